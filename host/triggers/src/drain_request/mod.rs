//! The DrainRequest trigger: objects of NVSentinel's kind that name this node request a drain of it. All that are open at
//! once become one drain, and each gets its own answer in its status.
//!
//! `state` decides and does no I/O; `conditions` says what a request's status should be; `run` does the I/O. The module
//! must not know how the API server is reached, nor how a drain works.

mod conditions;
mod request;
mod run;
mod state;

pub use conditions::ConditionNames;
pub use request::{ObservedRequest, RequestChange, ServedRequests};
pub use run::{DrainRequestDeps, DrainRequestOptions, FindResumePoint, SetConditions, run};
pub use state::{NoDrain, PlannedDrain, UnwrittenConditions, planned_drain};

/// The trigger's name in reports and checkpoints.
pub const TRIGGER: &str = scupper_engine::Trigger::DrainRequest.name();
