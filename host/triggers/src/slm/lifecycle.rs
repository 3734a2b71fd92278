//! LifecycleEvent and LifecycleTransition, reduced to the fields that the trigger needs. It must not know their wire
//! format.

use std::time::Duration;

use scupper_engine::Time;

use crate::RequestedSettings;

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
    /// The drain settings on the event, or the problem with them.
    pub flags: Option<Result<RequestedSettings, String>>,
}

impl LifecycleEvent {
    /// The drain settings on the event, if they are valid.
    pub(super) fn flags(&self) -> Option<&RequestedSettings> {
        self.flags.as_ref()?.as_ref().ok()
    }
}

/// The status of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimStatus {
    /// Not claimed yet.
    Pending,
    /// Claimed; the kubelet drives it.
    Claimed,
    /// Ended: failed.
    Failed,
    /// Ended: its deadline passed.
    SlaExpired,
    /// Ended: succeeded.
    Succeeded,
    /// An unknown status.
    Other(String),
}

impl ClaimStatus {
    /// Parses `status.claimStatus`, ignoring case; the empty text means pending.
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

    /// True if the event has ended.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Failed | Self::SlaExpired | Self::Succeeded)
    }

    /// The text for `status.claimStatus`.
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

/// A change from the watch of events whose `spec.bindingNode` is this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifecycleChange {
    /// All events as one consistent list: when the watch starts and after it broke.
    Listed(Vec<LifecycleEvent>),
    /// An event that is new or has changed.
    Applied(LifecycleEvent),
    /// An event was deleted.
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
    /// The nodes to which it applies.
    pub nodes: NodeSelection,
    /// `spec.sla`.
    pub sla: Option<Duration>,
}

/// The nodes to which a transition applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSelection {
    /// `spec.allNodes`.
    AllNodes,
    /// `spec.nodeName`.
    Node(String),
    /// `spec.nodeSelector`, which this driver never sets.
    Selector,
}

/// A change from the watch of transitions whose `spec.driver` is this driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionChange {
    /// All transitions as one consistent list.
    Listed(Vec<Transition>),
    /// A transition that is new or has changed.
    Applied(Transition),
    /// A transition was deleted, or now names another driver.
    Gone {
        /// Its name.
        name: String,
    },
}
