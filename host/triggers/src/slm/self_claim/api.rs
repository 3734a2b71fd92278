//! What claiming asks of the API server. Another edge does it.

use futures::future::BoxFuture;
use scupper_contract::FINALIZER;
use scupper_engine::Time;

use crate::slm::{ClaimStatus, LifecycleEvent, Transition};

/// Reads and writes what a kubelet would.
pub trait ClaimApi: Send + Sync {
    /// An event, its transition and the node's condition, as the API server has them now.
    fn read<'a>(&'a self, event: &'a str) -> BoxFuture<'a, Result<EventSnapshot, ClaimError>>;

    /// Changes an event that has not changed since it was looked at, and says what it has become.
    fn write<'a>(
        &'a self,
        seen: &'a VersionedEvent,
        change: &'a EventUpdate,
    ) -> BoxFuture<'a, Result<VersionedEvent, ClaimError>>;

    /// Deletes an event. One that is gone is no error.
    fn delete<'a>(&'a self, seen: &'a VersionedEvent) -> BoxFuture<'a, Result<(), ClaimError>>;

    /// Writes the condition of the node.
    fn set_condition<'a>(
        &'a self,
        condition: &'a TransitionCondition,
    ) -> BoxFuture<'a, Result<(), ClaimError>>;
}

/// An event in one version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedEvent {
    /// What it says.
    pub event: LifecycleEvent,
    /// What tells this version from others.
    pub version: String,
    /// Every finalizer it has.
    pub finalizers: Vec<String>,
}

impl VersionedEvent {
    /// It has the finalizer of whoever claims events.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == FINALIZER)
    }

    /// With that finalizer.
    pub(super) fn add_finalizer(&self) -> EventUpdate {
        let more = [FINALIZER.to_owned()];
        EventUpdate::Finalizers(self.finalizers.iter().cloned().chain(more).collect())
    }

    /// Without it.
    pub(super) fn remove_finalizer(&self) -> EventUpdate {
        let others = self.finalizers.iter().filter(|name| *name != FINALIZER);
        EventUpdate::Finalizers(others.cloned().collect())
    }
}

/// What was seen in one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSnapshot {
    /// The event; `None`: it is gone.
    pub event: Option<VersionedEvent>,
    /// The transition that it names; `None`: there is none.
    pub transition: Option<Transition>,
    /// The condition of the node.
    pub condition: TransitionCondition,
}

/// The node condition `LifecycleTransition`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransitionCondition {
    /// Its reason: where the transition stands.
    pub reason: String,
    /// Its message: which transition that is.
    pub message: String,
}

/// What to change in an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventUpdate {
    /// It has these finalizers.
    Finalizers(Vec<String>),
    /// It is claimed.
    Claim {
        /// By this driver.
        driver: String,
        /// To end by then.
        sla: Option<Time>,
    },
    /// It is over.
    Finish {
        /// How it ended.
        status: ClaimStatus,
        /// The driver that failed it.
        driver: Option<String>,
    },
}

/// The API server did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The object has changed since it was looked at.
    #[error("{0}")]
    Conflict(String),
    /// 401, 403. It answers so for a moment also after a restart, or while keys rotate.
    #[error("{0}")]
    Forbidden(String),
    /// It will not do it, however often it is asked.
    #[error("{0}")]
    Refused(String),
    /// It may do it another time.
    #[error("{0}")]
    Unavailable(String),
}
