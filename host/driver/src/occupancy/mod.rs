//! Whether a drain may begin on a node: one at a time. The node decides, as it is read under the Lease, or before a
//! command asks for anything. Within a driver, the manager queues requests besides.

mod error;

use scupper_engine::{Checkpoint, Intent, Node, Phase, Trigger};

pub use error::LocalError;

/// What a request finds on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOccupancy {
    /// Nothing is in its way.
    Free,
    /// Its own drain, which it continues unless that has ended.
    Own(Checkpoint),
    /// Another drain that has not ended. For a command: one that it continues.
    Occupied(Checkpoint),
    /// This LifecycleEvent, which a driver is about to carry out.
    Claimed(String),
    /// To uncordon: the cordon is not ours.
    ForeignCordon,
}

/// What the user of a command allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OccupancyOverrides {
    /// To continue what another process began, for whatever trigger, or to drain a node where it began an uncordon. That
    /// process must be gone.
    pub take_over: bool,
    /// To drain a node whatever another process was doing there: its machine is off, and so is its driver.
    pub node_is_off: bool,
    /// To lift a cordon that is not ours.
    pub any_cordon: bool,
    /// To undo what another process began.
    pub undoes: bool,
}

impl OccupancyOverrides {
    /// A drain of a machine that is off continues a drain, with its cordon and its hooks. It replaces a roll-back, which
    /// would end with a node that takes pods. Every drain that may take over replaces an uncordon.
    fn on_occupied(self, mark: Checkpoint, node: &str, intent: Intent) -> Result<NodeOccupancy, LocalError> {
        let may_take_over = self.take_over || (self.node_is_off && intent == Intent::Drain);
        match (intent, mark.intent) {
            _ if !may_take_over => Err(LocalError::busy(node, mark, intent)),
            (Intent::Uncordon, Intent::Drain) => Err(LocalError::busy(node, mark, intent)),
            (Intent::Drain, Intent::Uncordon) => Ok(NodeOccupancy::Free),
            _ if self.node_is_off && mark.phase == Phase::RollingBack => Ok(NodeOccupancy::Free),
            // It may be of some pods only, or of one GPU. Continued here, it would be of the whole node.
            _ if !self.node_is_off && !self.undoes && Trigger::of(&mark.trigger) == Trigger::DrainRequest => {
                Err(LocalError::OfDrainRequest {
                    node: node.to_owned(),
                    name: mark.name,
                })
            }
            _ => Ok(NodeOccupancy::Occupied(mark)),
        }
    }
}

impl NodeOccupancy {
    /// Of a request: its id, and the mark that it last had if this process has begun it. `None`: it is new.
    pub fn of(request: Option<(&str, Option<Checkpoint>)>, intent: Intent, node: Option<&Node>) -> Self {
        let own = request.and_then(|(id, last)| Checkpoint::to_go_on_from(id, last, node));
        if let Some(own) = own {
            return Self::Own(own);
        }
        let Some(node) = node else { return Self::Free };
        match &node.checkpoint {
            Some(other) if other.is_under_way() => Self::Occupied(other.clone()),
            _ if intent == Intent::Uncordon && has_foreign_cordon(node) => Self::ForeignCordon,
            _ => Self::Free,
        }
    }

    /// The same, with the LifecycleEvent of the node that is claimed.
    #[must_use]
    pub fn and_claimed(self, event: Option<String>) -> Self {
        match (self, event) {
            (Self::Free | Self::ForeignCordon, Some(event)) => Self::Claimed(event),
            (found, _) => found,
        }
    }

    /// What a command may begin on or continue.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn for_command(
        self,
        node: &str,
        intent: Intent,
        allowed: OccupancyOverrides,
    ) -> Result<Self, LocalError> {
        match self {
            Self::Occupied(mark) => allowed.on_occupied(mark, node, intent),
            Self::Claimed(event) => Err(LocalError::claimed(node, event, intent)),
            Self::ForeignCordon if !allowed.any_cordon => Err(LocalError::ForeignCordon {
                node: node.to_owned(),
            }),
            found => Ok(found),
        }
    }

    /// The checkpoint of this request.
    pub(crate) const fn own(&self) -> Option<&Checkpoint> {
        match self {
            Self::Own(mark) => Some(mark),
            _ => None,
        }
    }
}

/// Whether the node is cordoned, and not by us.
pub fn has_foreign_cordon(node: &Node) -> bool {
    let is_ours = node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon);
    node.unschedulable && !is_ours
}

#[cfg(test)]
mod tests;
