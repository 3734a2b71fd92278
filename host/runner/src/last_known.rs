//! What the engines of one drain knew last. An engine is dropped when its process loses the node's Lease; without this, a
//! drain that another process has ended meanwhile would look like one that has not begun, and begin again.

use scupper_engine::{Checkpoint, Drain, Intent, Node, Outcome, Phase};
use tokio::sync::watch;

use crate::orders::DrainOrders;

/// See the module. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LastKnown(watch::Sender<Known>);

#[derive(Clone, Debug, Default)]
struct Known {
    /// The drain's mark, as an engine last saw it on the node. A write that was not answered does not count, unless the
    /// watch has shown it. It stays known when it is removed.
    mark: Option<Checkpoint>,
    /// How the drain ends, as soon as that is known.
    outcome: Option<Outcome>,
    /// The drain is over, and that is reported.
    is_reported: bool,
}

/// The end of a drain that has no mark on its node any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainEnd {
    /// How our own engine was ending it. `None`: another process has ended it.
    outcome: Option<Outcome>,
    /// Our own engine has reported it.
    pub is_reported: bool,
}

impl LastKnown {
    /// An engine continues from this mark.
    pub fn resume(&self, mark: &Checkpoint) {
        self.0.send_modify(|known| known.mark = Some(mark.clone()));
    }

    /// The engine has made a turn.
    pub fn update(&self, drain: &Drain) {
        let mark = drain.node().and_then(|node| node.checkpoint.as_ref());
        let own = mark.filter(|mark| mark.id == drain.request().id);
        self.0.send_modify(|known| {
            if own.is_some() && own != known.mark.as_ref() {
                known.mark = own.cloned();
            }
            known.outcome = drain.outcome().cloned();
            known.is_reported = drain.phase() == Phase::Finished;
        });
    }

    /// The last mark.
    pub fn mark(&self) -> Option<Checkpoint> {
        self.0.borrow().mark.clone()
    }

    /// The end of the drain with this id, if our own engine had ended it, or if it had begun and `node`, as it is under the
    /// Lease, has no mark of it any more. `None`: it begins or continues. On another Node of the same name it continues,
    /// and the engine reports it as lost.
    pub fn end_on(&self, id: &str, node: Option<&Node>) -> Option<DrainEnd> {
        let known = self.0.borrow();
        let last = known.mark.as_ref();
        let node = node.filter(|node| last.is_none_or(|last| last.node == node.uid));
        let mark = node.and_then(|node| node.checkpoint.as_ref());
        if mark.is_some_and(|mark| mark.id == id) {
            return None;
        }
        let outcome = match (last, node) {
            _ if known.is_reported => known.outcome.clone(),
            (Some(last), Some(node)) => known.outcome.clone().or_else(|| met_on(node, last)),
            _ => return None,
        };
        Some(DrainEnd {
            outcome,
            is_reported: known.is_reported,
        })
    }
}

/// What the drain with this mark was to do is done: by another process, or by a last write of ours that was not answered.
fn met_on(node: &Node, last: &Checkpoint) -> Option<Outcome> {
    let (is_met, outcome) = match last.intent {
        // Under a cordon of others a drain leaves only its condition.
        Intent::Drain => (
            last.only_pods.is_none() && node.is_drained_by_us(),
            Outcome::Drained,
        ),
        Intent::Uncordon => (!node.unschedulable, Outcome::Uncordoned { cordon_kept: false }),
    };
    is_met.then_some(outcome)
}

impl DrainEnd {
    /// The outcome to report.
    pub fn outcome(&self, orders: &DrainOrders, node: &str) -> Outcome {
        let own = self.outcome.clone().or_else(|| orders.called_off());
        own.unwrap_or_else(|| Outcome::Lost {
            reason: format!("another process has ended it, and node {node} has no mark of it any more"),
        })
    }
}

#[cfg(test)]
mod tests;
