//! `lifecycle.k8s.io/v1alpha1`: the objects that request and offer drains, as this edge returns them.

use std::time::Duration;

use scupper_engine::{Time, Uid};

use super::Change;

/// The annotation with the drain settings of a LifecycleEvent.
pub const FLAGS_ANNOTATION: &str = "scupper.dev/drain-flags";

/// A change in the stream of LifecycleEvents.
pub type LifecycleChange = Change<LifecycleEvent>;

/// A change in the stream of LifecycleTransitions.
pub type TransitionChange = Change<LifecycleTransition>;

/// A request that a node goes through a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleEvent {
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: Uid,
    /// `metadata.creationTimestamp`
    pub created: Option<Time>,
    /// `spec.transitionName`
    pub transition_name: String,
    /// `spec.bindingNode`
    pub binding_node: String,
    /// `status.claimStatus` as written; compare it ignoring case. Empty means `Pending`.
    pub claim_status: String,
    /// `status.driver`: the string, or the name in the object that newer versions use. Empty when absent.
    pub driver: String,
    /// `status.sla`: the deadline.
    pub sla: Option<Time>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The raw annotation [`FLAGS_ANNOTATION`].
    pub flags: Option<String>,
}

/// A transition that a driver offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleTransition {
    /// `metadata.name`
    pub name: String,
    /// `spec.start`
    pub start: String,
    /// `spec.end`
    pub end: String,
    /// The nodes to which it applies.
    pub scope: TransitionNodes,
    /// `spec.sla`
    pub sla: Option<Duration>,
    /// `spec.driver`
    pub driver: String,
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

/// The result of publishing a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It did not exist and was created.
    Created,
    /// Its mutable fields were changed.
    Updated,
    /// It already was as wanted.
    Unchanged,
    /// Its immutable node selection differed, so it was deleted and created.
    Recreated,
}

impl LifecycleEvent {
    /// True if `status.claimStatus` is this one, ignoring case.
    pub fn is(&self, claim_status: &str) -> bool {
        let own = if self.claim_status.is_empty() {
            "Pending"
        } else {
            &self.claim_status
        };
        own.eq_ignore_ascii_case(claim_status)
    }
}
