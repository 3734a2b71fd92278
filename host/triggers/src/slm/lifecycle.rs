//! LifecycleEvent and LifecycleTransition, as far as the door cares. It must not know their wire format.

use std::time::Duration;

use scupper_engine::Time;

use crate::DrainFlags;

/// A LifecycleEvent that is bound to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleEvent {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.creationTimestamp`.
    pub created: Option<Time>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `spec.transitionName`.
    pub transition: String,
    /// `spec.bindingNode`.
    pub node: String,
    /// `status.claimStatus`.
    pub claim: ClaimStatus,
    /// `status.driver`, or `status.driver.name` where that is an object; `None` when absent or empty.
    pub driver: Option<String>,
    /// `status.sla`.
    pub sla: Option<Time>,
    /// What it says of the drain besides, or what is wrong with that.
    pub flags: Option<Box<Result<DrainFlags, String>>>,
}

impl LifecycleEvent {
    /// What it says of the drain besides, if that makes sense.
    pub(super) fn flags(&self) -> Option<&DrainFlags> {
        self.flags.as_deref()?.as_ref().ok()
    }
}

/// Where an event stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimStatus {
    /// Nobody has taken it up.
    Pending,
    /// The kubelet drives it.
    Claimed,
    /// Over: it did not work.
    Failed,
    /// Over: its deadline passed.
    SlaExpired,
    /// Over: done.
    Succeeded,
    /// A word that we do not know.
    Other(String),
}

impl ClaimStatus {
    /// Reads `status.claimStatus`, whatever its case; the empty text means pending.
    pub fn parse(text: &str) -> Self {
        match text.to_ascii_lowercase().as_str() {
            "" | "pending" => Self::Pending,
            "claimed" => Self::Claimed,
            "failed" => Self::Failed,
            "slaexpired" => Self::SlaExpired,
            "succeeded" => Self::Succeeded,
            _ => Self::Other(text.to_owned()),
        }
    }

    /// The event is over.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Failed | Self::SlaExpired | Self::Succeeded)
    }

    /// As it is written in `status.claimStatus`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "Pending",
            Self::Claimed => "Claimed",
            Self::Failed => "Failed",
            Self::SlaExpired => "SlaExpired",
            Self::Succeeded => "Succeeded",
            Self::Other(text) => text,
        }
    }
}

/// What the watch of events with `spec.bindingNode` of this node tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifecycleChange {
    /// All there are, as one consistent list: the watch's beginning, or after it broke.
    Listed(Vec<LifecycleEvent>),
    /// One is new or has changed.
    Applied(LifecycleEvent),
    /// One is gone.
    Gone {
        /// Its UID.
        uid: String,
    },
}

/// A LifecycleTransition that names our driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// `metadata.name`.
    pub name: String,
    /// `spec.driver`.
    pub driver: String,
    /// `spec.start`.
    pub start: String,
    /// `spec.end`.
    pub end: String,
    /// Which nodes it is for.
    pub nodes: NodeSelection,
    /// `spec.sla`.
    pub sla: Option<Duration>,
}

/// Which nodes a transition is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSelection {
    /// `spec.allNodes`.
    AllNodes,
    /// `spec.nodeName`.
    Node(String),
    /// `spec.nodeSelector`, which is never ours.
    Selector,
}

/// What the watch of transitions with `spec.driver` of ours tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionChange {
    /// All there are, as one consistent list.
    Listed(Vec<Transition>),
    /// One is new or has changed.
    Applied(Transition),
    /// One is gone, or names another driver now.
    Gone {
        /// Its name.
        name: String,
    },
}
