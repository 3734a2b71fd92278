//! Corrects our node conditions when they are no longer true and no drain does it: `Drained` on a node that a user has
//! uncordoned, `DrainInProgress` when the terminal that drained is gone, and what they say of a cordon that was tried, once that
//! cordon is lifted.

use std::time::Duration;

use scupper_api::NodeCondition;
use scupper_engine::Node;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::manager::resume_point;
use scupper_lease::{LeaseObserver, NodeLeases};
use scupper_report::{conditions_of_abandoned, conditions_of_uncordoned, conditions_with_sequel};
use scupper_triggers::DriverState;
use scupper_triggers::cordon::{LIFTED_SINCE, was_tried};

/// How often to check whether the terminal that drains is alive, and to retry a failed write.
const LOOK: Duration = Duration::from_secs(10);

/// Ends with the watch of the node.
pub(super) async fn run(
    leases: NodeLeases,
    mut driver_state: watch::Receiver<DriverState>,
    mut nodes: watch::Receiver<Option<Node>>,
) {
    let cluster = leases.cluster.clone();
    let mut observer = LeaseObserver::new(leases);
    loop {
        let node = nodes.borrow_and_update().clone();
        // Our own drain sets the conditions at its end.
        let is_idle = !matches!(*driver_state.borrow_and_update(), DriverState::Running { .. });
        let (mut of_terminal, mut failed) = (false, false);
        if let Some(node) = node.filter(|_| is_idle) {
            let changes = match conditions_of_lifted_cordon(&node) {
                // What has ended just now may have written its conditions, and the watch does not know them yet.
                Some(_) => match cluster.node(&node.name).await {
                    Ok(node) => node.as_ref().and_then(conditions_of_lifted_cordon),
                    Err(error) => {
                        failed = true;
                        tracing::warn!(node = node.name, %error, "could not look whether a condition of Scupper is true");
                        None
                    }
                },
                None => None,
            };
            let left = conditions_left_by_terminal(&node).filter(|_| changes.is_none());
            of_terminal = left.is_some();
            let left = match left {
                Some(left) => observer.is_abandoned(&node.name).await.then_some(left),
                None => None,
            };
            if let Some(changes) = changes.or(left)
                && let Err(error) = cluster.set_node_conditions(&node.name, &changes).await
            {
                failed = true;
                tracing::warn!(node = node.name, %error, "could not reset a condition of Scupper");
            }
        }
        tokio::select! {
            changed = nodes.changed() => if changed.is_err() {
                return;
            },
            // The node may have changed for the last time while a drain ended.
            Ok(()) = driver_state.changed() => {}
            () = sleep(LOOK), if of_terminal || failed => {}
        }
    }
}

/// The changes for a node whose cordon is lifted: it is not drained any more, and a cordon that was tried is over.
fn conditions_of_lifted_cordon(node: &Node) -> Option<Vec<NodeCondition>> {
    let is_over = !node.unschedulable && was_tried(node);
    let tried = || conditions_with_sequel(node, LIFTED_SINCE).filter(|_| is_over);
    conditions_of_uncordoned(node).or_else(tried)
}

/// The changes for an unfinished drain of a terminal.
fn conditions_left_by_terminal(node: &Node) -> Option<Vec<NodeCondition>> {
    let mark = resume_point::of_command(node)?;
    let message = format!(
        "drain {}: its process is gone; scupper drain {} --take-over continues it",
        mark.name, node.name
    );
    conditions_of_abandoned(node, &message)
}
