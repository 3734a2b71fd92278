//! The API server operations that self-claim needs. Another edge implements them.

use futures::future::BoxFuture;
use scupper_api::{ClaimStatus, LifecycleTransition};
use scupper_contract::FINALIZER;
use scupper_engine::Time;

use crate::slm::VersionedEvent;

/// Reads and writes the same objects as a kubelet.
pub trait ClaimApi: Send + Sync {
    /// Reads an event, its transition and the node's condition from the API server.
    fn read<'a>(&'a self, event: &'a str) -> BoxFuture<'a, Result<EventSnapshot, ClaimError>>;

    /// Updates an event that has not changed since it was read, and returns the result.
    fn write<'a>(
        &'a self,
        seen: &'a VersionedEvent,
        change: &'a EventUpdate,
    ) -> BoxFuture<'a, Result<VersionedEvent, ClaimError>>;

    /// Deletes an event. An event that is already gone is no error.
    fn delete<'a>(&'a self, seen: &'a VersionedEvent) -> BoxFuture<'a, Result<(), ClaimError>>;

    /// Writes the node's condition.
    fn set_condition<'a>(
        &'a self,
        condition: &'a TransitionCondition,
    ) -> BoxFuture<'a, Result<(), ClaimError>>;
}

/// True if the event has the claimant's finalizer.
pub fn has_finalizer<F>(event: &scupper_api::VersionedEvent<F>) -> bool {
    event.finalizers.iter().any(|name| name == FINALIZER)
}

/// Adds that finalizer.
pub(super) fn add_finalizer(event: &VersionedEvent) -> EventUpdate {
    let more = [FINALIZER.to_owned()];
    EventUpdate::Finalizers(event.finalizers.iter().cloned().chain(more).collect())
}

/// Removes that finalizer.
pub(super) fn remove_finalizer(event: &VersionedEvent) -> EventUpdate {
    let others = event.finalizers.iter().filter(|name| *name != FINALIZER);
    EventUpdate::Finalizers(others.cloned().collect())
}

/// A consistent read of an event and what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSnapshot {
    /// The event; `None` if it is gone.
    pub event: Option<VersionedEvent>,
    /// The transition that it names; `None` if there is none.
    pub transition: Option<LifecycleTransition>,
    /// The node's condition.
    pub condition: TransitionCondition,
}

/// The node condition `LifecycleTransition`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransitionCondition {
    /// The reason: the state of the transition.
    pub reason: String,
    /// The message: the name of the transition.
    pub message: String,
}

/// An update of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventUpdate {
    /// Sets the finalizers.
    Finalizers(Vec<String>),
    /// Claims the event.
    Claim {
        /// The claiming driver.
        driver: String,
        /// The deadline.
        sla: Option<Time>,
    },
    /// Ends the event.
    Finish {
        /// The final status.
        status: ClaimStatus,
        /// The driver on which it failed.
        driver: Option<String>,
    },
}

/// An operation that failed on the API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The object has changed since it was read.
    #[error("{0}")]
    Conflict(String),
    /// 401 or 403. Also happens briefly after a restart, or while keys rotate.
    #[error("{0}")]
    Forbidden(String),
    /// The API server refuses it permanently.
    #[error("{0}")]
    Refused(String),
    /// The API server may accept it later.
    #[error("{0}")]
    Unavailable(String),
}
