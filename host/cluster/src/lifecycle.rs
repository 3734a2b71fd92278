//! `lifecycle.k8s.io/v1alpha1`: the objects by which people ask for a drain, as this edge hands them out.

use scupper_engine::{Duration, Time, Uid};

use super::Change;

/// What a LifecycleEvent says of the drain besides which one it is.
pub const FLAGS_ANNOTATION: &str = "scupper.dev/drain-flags";

/// What the stream of LifecycleEvents tells.
pub type LifecycleChange = Change<LifecycleEvent>;

/// What the stream of LifecycleTransitions tells.
pub type TransitionChange = Change<LifecycleTransition>;

/// Somebody's wish that a node goes through a transition.
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
    /// `status.claimStatus` as it is written there; compare it without regard to case. Empty means `Pending`.
    pub claim_status: String,
    /// `status.driver`: the string, or the name of the object that newer texts make of it. Empty when absent.
    pub driver: String,
    /// `status.sla`: the deadline.
    pub sla: Option<Time>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The annotation [`FLAGS_ANNOTATION`], as it is there.
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
    /// Which nodes it is for.
    pub scope: Scope,
    /// `spec.sla`
    pub sla: Option<Duration>,
    /// `spec.driver`
    pub driver: String,
}

/// Which nodes a transition is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `spec.allNodes`
    AllNodes,
    /// `spec.nodeName`
    Node(String),
    /// `spec.nodeSelector`, which we never publish.
    Selector,
}

/// What publishing a transition came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// There was none.
    Created,
    /// Its mutable fields were changed.
    Updated,
    /// It was there as wanted.
    Unchanged,
    /// Its nodes, which are immutable, were others: deleted and created.
    Recreated,
}

impl LifecycleEvent {
    /// Whether `status.claimStatus` is this one, whatever its spelling.
    pub fn is(&self, claim_status: &str) -> bool {
        let own = if self.claim_status.is_empty() {
            "Pending"
        } else {
            &self.claim_status
        };
        own.eq_ignore_ascii_case(claim_status)
    }
}
