//! Takes back what conditions of ours say once it is not true any more and nobody else is there to do it: that the node
//! is drained, when somebody has uncordoned it without a word to us; that a drain is in progress, when the terminal that
//! carried it out is gone. The watch shows it, the report edge knows what is to be said, the cluster edge writes it.

use std::time::Duration;

use scupper_engine::Node;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::lease::{LeaseObserver, NodeLeases};
use crate::manager::resume_point;
use crate::reporter::writer::set_conditions;
use scupper_report::{ConditionChange, conditions_of_abandoned, conditions_of_uncordoned};
use scupper_triggers::DriverState;

/// How often it is looked whether a terminal that drains this node is still there, and a failed write tried again.
const LOOK: Duration = Duration::from_secs(10);

/// Begins to; ends when nobody shows the node any more.
pub(crate) fn take_back(
    leases: NodeLeases,
    standing: watch::Receiver<DriverState>,
    mut nodes: watch::Receiver<Option<Node>>,
) {
    tokio::spawn(async move {
        let cluster = leases.cluster.clone();
        let mut observer = LeaseObserver::new(leases);
        loop {
            let node = nodes.borrow_and_update().clone();
            // What a drain or an uncordon of ours leads to is told at its end.
            let is_idle = !matches!(*standing.borrow(), DriverState::Running { .. });
            let (mut of_terminal, mut failed) = (false, false);
            if let Some(node) = node.filter(|_| is_idle) {
                let changes = conditions_of_uncordoned(&node);
                let left = conditions_left_by_terminal(&node).filter(|_| changes.is_none());
                of_terminal = left.is_some();
                let left = match left {
                    Some(left) => observer.is_abandoned(&node.name).await.then_some(left),
                    None => None,
                };
                if let Some(changes) = changes.or(left)
                    && let Err(error) = set_conditions(&cluster, &node.name, &changes).await
                {
                    failed = true;
                    tracing::warn!(node = node.name, %error, "could not reset a condition of Scupper");
                }
            }
            tokio::select! {
                changed = nodes.changed() => if changed.is_err() {
                    return;
                },
                () = sleep(LOOK), if of_terminal || failed => {}
            }
        }
    });
}

/// A drain of a terminal stands there as under way.
fn conditions_left_by_terminal(node: &Node) -> Option<Vec<ConditionChange>> {
    let mark = resume_point::of_command(node)?;
    let message = format!(
        "drain {}: its process is gone; scupper drain {} --take-over continues it",
        mark.name, node.name
    );
    conditions_of_abandoned(node, &message)
}
