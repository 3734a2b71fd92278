//! What claiming asks of the API server. Another edge does it.

use futures::future::BoxFuture;
use scupper_contract::FINALIZER;
use scupper_engine::Time;

use crate::slm::{ClaimStatus, LifecycleEvent, Transition};

/// Reads and writes what a kubelet would.
pub trait ClaimApi: Send + Sync {
    /// An event, its transition and the node's condition, as the API server has them now.
    fn look<'a>(&'a self, event: &'a str) -> BoxFuture<'a, Result<Sight, ClaimError>>;

    /// Changes an event that has not changed since it was looked at, and says what it has become.
    fn write<'a>(
        &'a self,
        seen: &'a Claimable,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<Claimable, ClaimError>>;

    /// Deletes an event. One that is gone is no error.
    fn remove<'a>(&'a self, seen: &'a Claimable) -> BoxFuture<'a, Result<(), ClaimError>>;

    /// Writes the condition of the node.
    fn set_condition<'a>(&'a self, condition: &'a Condition) -> BoxFuture<'a, Result<(), ClaimError>>;
}

/// An event in one version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimable {
    /// What it says.
    pub event: LifecycleEvent,
    /// What tells this version from others.
    pub version: String,
    /// Every finalizer it has.
    pub finalizers: Vec<String>,
}

impl Claimable {
    /// It has the finalizer of whoever claims events.
    pub fn is_held(&self) -> bool {
        self.finalizers.iter().any(|name| name == FINALIZER)
    }

    /// With that finalizer.
    pub(super) fn hold(&self) -> Change {
        let more = [FINALIZER.to_owned()];
        Change::Finalizers(self.finalizers.iter().cloned().chain(more).collect())
    }

    /// Without it.
    pub(super) fn release(&self) -> Change {
        let others = self.finalizers.iter().filter(|name| *name != FINALIZER);
        Change::Finalizers(others.cloned().collect())
    }
}

/// What was seen in one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// The event; `None`: it is gone.
    pub event: Option<Claimable>,
    /// The transition that it names; `None`: there is none.
    pub transition: Option<Transition>,
    /// The condition of the node.
    pub condition: Condition,
}

/// The node condition `LifecycleTransition`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Its reason: where the transition stands.
    pub reason: String,
    /// Its message: which transition that is.
    pub message: String,
}

/// What to change in an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
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
