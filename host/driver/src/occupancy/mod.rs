//! Whether a drain may begin on a node: one at a time. The node decides, as it is read under the Lease, or before a
//! command asks for anything. Within a driver, the manager queues requests besides.

mod error;

use scupper_engine::{Checkpoint, Intent, Node, Phase};

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
    /// To continue what another process began, for whatever trigger. That process must be gone.
    pub take_over: bool,
    /// To drain a node whatever another process was doing there: its machine is off, and so is its driver.
    pub node_is_off: bool,
    /// To lift a cordon that is not ours.
    pub any_cordon: bool,
}

impl OccupancyOverrides {
    /// A drain of a machine that is off continues a drain, with its cordon and its hooks. It replaces an uncordon and a
    /// roll-back: both would end with a node that takes pods.
    fn on_occupied(self, mark: Checkpoint, node: &str, intent: Intent) -> Result<NodeOccupancy, LocalError> {
        let is_alike = mark.intent == intent;
        let replaces = self.node_is_off && intent == Intent::Drain;
        if self.take_over && is_alike && !replaces {
            return Ok(NodeOccupancy::Occupied(mark));
        }
        match replaces {
            true if is_alike && mark.phase != Phase::RollingBack => Ok(NodeOccupancy::Occupied(mark)),
            true => Ok(NodeOccupancy::Free),
            false => Err(LocalError::busy(node, mark)),
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
            mark => {
                let is_ours = mark.as_ref().is_some_and(|mark| mark.own_cordon);
                if intent == Intent::Uncordon && node.unschedulable && !is_ours {
                    Self::ForeignCordon
                } else {
                    Self::Free
                }
            }
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
            Self::Claimed(event) => Err(LocalError::claimed(node, event)),
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

#[cfg(test)]
mod tests;
