//! Reports what policies must still undo although the node takes pods and no drain runs: a user has uncordoned it, or the Node
//! was made anew. The end of a drain reports what it leaves itself; the metric shows both.

use std::time::Duration;

use scupper_cluster::{Cluster, KubernetesEvent, Severity};
use scupper_engine::{Node, Uid};
use scupper_metrics::Metrics;
use scupper_report::{LeasedDrain, LeftToUndo};
use scupper_triggers::DriverState;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use scupper_lease::{LeaseObserver, NodeLeases};
use scupper_runner::reporter::write_retry::{self, WriteRetryLimits};

/// The reason of the Event.
const REASON: &str = "PolicyMustUndo";
/// How long it must last: an uncordon may be about to begin.
const AFTER: Duration = Duration::from_secs(15);
/// A Lease that a process may hold is read again after this time: its end changes nothing of the node.
const LEASE_AGAIN: Duration = Duration::from_secs(10);

/// Ends with the watch of the node.
pub(super) async fn run(
    leases: NodeLeases,
    mut driver_state: watch::Receiver<DriverState>,
    mut nodes: watch::Receiver<Option<Node>>,
    metrics: Metrics,
) {
    let cluster = leases.cluster.clone();
    let mut records = Records {
        observer: LeaseObserver::new(leases),
        leased: None,
    };
    let mut seen: Option<(LeftToUndo, Instant)> = None;
    let mut reported = LeftToUndo::default();
    loop {
        let is_idle = !matches!(*driver_state.borrow_and_update(), DriverState::Running { .. });
        let node = nodes.borrow_and_update().clone();
        let left = match &node {
            Some(node) if is_idle => records.left_on(node).await,
            _ => LeftToUndo::default(),
        };
        metrics.show_to_undo(left.policies.keys());
        if left.policies.is_empty() {
            reported = LeftToUndo::default();
        }
        if seen.as_ref().is_none_or(|(known, _)| *known != left) {
            seen = Some((left, Instant::now()));
        }
        let due = seen
            .as_ref()
            .filter(|(left, _)| left.is_news && *left != reported);
        let due = due.map(|(left, since)| (left.clone(), *since + AFTER));
        match due {
            Some((left, at)) if Instant::now() >= at => {
                if let Some(node) = &node {
                    report(&cluster, &node.name, &left).await;
                }
                reported = left;
            }
            _ => {
                let at = due.as_ref().map_or_else(Instant::now, |(_, at)| *at);
                tokio::select! {
                    changed = nodes.changed() => if changed.is_err() {
                        return;
                    },
                    Ok(()) = driver_state.changed() => {}
                    () = sleep_until(at), if due.is_some() => {}
                    () = sleep(LEASE_AGAIN), if is_idle && node.as_ref().is_some_and(|node| records.is_open(node)) => {}
                }
            }
        }
    }
}

/// The node's mark, or what its Lease says if it has none.
struct Records {
    observer: LeaseObserver,
    /// For each Node without a mark, read until no process can hold the Lease.
    leased: Option<(Uid, Option<LeasedDrain>)>,
}

impl Records {
    async fn left_on(&mut self, node: &Node) -> LeftToUndo {
        if node.checkpoint.is_some() {
            self.leased = None;
            return LeftToUndo::of(node, None);
        }
        if self.leased.as_ref().is_none_or(|(uid, _)| *uid != node.uid) {
            let drain = self.observer.left_drain(&node.name).await;
            self.leased = drain.map(|drain| (node.uid.clone(), drain));
        }
        let leased = self.leased.as_ref().and_then(|(_, drain)| drain.as_ref());
        LeftToUndo::of(node, leased)
    }

    /// A process may still hold the Lease of this node, which was looked at before.
    const fn is_open(&self, node: &Node) -> bool {
        node.checkpoint.is_none() && self.leased.is_none()
    }
}

async fn report(cluster: &Cluster, node: &str, left: &LeftToUndo) {
    let note = left.note();
    tracing::warn!(node, "{note}");
    let event = KubernetesEvent::of_node(node, Severity::Warning, REASON, note);
    // What the node is like meanwhile is looked at afterwards.
    write_retry::emit(cluster, &event, WriteRetryLimits::FOR_A_MINUTE).await;
}
