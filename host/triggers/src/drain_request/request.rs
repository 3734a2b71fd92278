//! A request as this trigger sees it.

use std::sync::Arc;

use scupper_api::{DrainRequestFields, DrainRequestRef};
use scupper_engine::{Condition, Time};

use crate::NamedPods;

/// A request that names this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedRequest {
    /// Which one.
    pub reference: DrainRequestRef,
    /// When it was created.
    pub created: Option<Time>,
    /// It is being deleted.
    pub deleting: bool,
    /// Why it cannot be served, if it cannot.
    pub problem: Option<String>,
    /// The only pods to evict; `None`: all of the node.
    pub only_pods: Option<NamedPods>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// What policies may ask about.
    pub fields: Arc<DrainRequestFields>,
}

/// The requests that a drain serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedRequests {
    /// The id of the drain.
    pub drain: String,
    /// Its requests, the oldest first.
    pub requests: Vec<Arc<DrainRequestFields>>,
}

impl ServedRequests {
    pub(super) fn of(drain: &str, requests: impl Iterator<Item = Arc<DrainRequestFields>>) -> Self {
        let mut requests: Vec<_> = requests.collect();
        requests.sort_by_key(|fields| fields.created);
        Self {
            drain: drain.to_owned(),
            requests,
        }
    }
}

/// A change of the requests in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestChange {
    /// All requests of this namespace.
    Listed(String, Vec<ObservedRequest>),
    /// One that is new or has changed.
    Applied(ObservedRequest),
    /// The one with this UID is gone.
    Deleted(String),
}

impl ObservedRequest {
    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Case does not matter, as for node-drainer.
    pub(super) fn is_true(&self, kind: &str) -> bool {
        self.condition(kind)
            .is_some_and(|condition| condition.status.eq_ignore_ascii_case("true"))
    }
}
