//! The lifecycle objects of SLM, which request and offer drains, reduced to the fields that the driver needs.

use std::time::Duration;

use scupper_engine::Time;

/// A LifecycleEvent: the request that a node goes through a transition. `F`: its drain settings, as text or as a reader
/// has parsed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifecycleEvent<F = String> {
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.creationTimestamp`
    pub created: Option<Time>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `spec.transitionName`
    pub transition: String,
    /// `spec.bindingNode`
    pub node: String,
    /// `status.claimStatus`
    pub claim: ClaimStatus,
    /// `status.driver`, or `status.driver.name` where that is an object; `None` when absent or empty.
    pub driver: Option<String>,
    /// `status.sla`: the deadline.
    pub sla: Option<Time>,
    /// The annotation with the drain settings.
    pub flags: Option<F>,
}

/// One version of a LifecycleEvent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedEvent<F = String> {
    /// Its content.
    pub event: LifecycleEvent<F>,
    /// `metadata.resourceVersion`
    pub version: String,
    /// `metadata.finalizers`
    pub finalizers: Vec<String>,
}

/// The status of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClaimStatus {
    /// Not claimed yet.
    #[default]
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

/// A LifecycleTransition: what a driver offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleTransition {
    /// `metadata.name`
    pub name: String,
    /// `spec.driver`
    pub driver: String,
    /// `spec.start`
    pub start: String,
    /// `spec.end`
    pub end: String,
    /// The nodes to which it applies.
    pub nodes: TransitionNodes,
    /// `spec.sla`
    pub sla: Option<Duration>,
}

/// The nodes to which a transition applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionNodes {
    /// `spec.allNodes`
    AllNodes,
    /// `spec.nodeName`
    Node(String),
    /// `spec.nodeSelector`, which the driver never publishes.
    Selector,
}

impl<F> LifecycleEvent<F> {
    /// Its deadline, unless it has ended: what is over ends at no time to come.
    pub fn deadline(&self) -> Option<Time> {
        self.sla.filter(|_| !self.claim.is_terminal())
    }

    /// The same event with other drain settings.
    pub fn map_flags<G>(self, parse: impl FnOnce(F) -> G) -> LifecycleEvent<G> {
        LifecycleEvent {
            uid: self.uid,
            name: self.name,
            created: self.created,
            deleting: self.deleting,
            transition: self.transition,
            node: self.node,
            claim: self.claim,
            driver: self.driver,
            sla: self.sla,
            flags: self.flags.map(parse),
        }
    }
}

impl<F> VersionedEvent<F> {
    /// The same version with other drain settings.
    pub fn map_flags<G>(self, parse: impl FnOnce(F) -> G) -> VersionedEvent<G> {
        VersionedEvent {
            event: self.event.map_flags(parse),
            version: self.version,
            finalizers: self.finalizers,
        }
    }
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
