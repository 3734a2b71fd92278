//! The commands that do not drain in their own process: plan, status, hand-over to the driver, cancel, doctor, cleanup.
//! They return results, and must not know how these are printed.
#![deny(missing_docs)]

use std::time::Duration;

mod cleanup;
mod details;
mod doctor;
mod driver_pods;
mod error;
#[cfg(test)]
mod error_texts;
mod handover;
mod plan;
mod policy_environment;
mod pre_flight;
mod progress;
mod status;

pub use cleanup::{CleanedUp, CleanupOptions, cleanup};
pub use doctor::{DoctorOptions, Finding, FindingState, doctor};
pub use error::CommandError;
pub use handover::HandOverError;
pub use handover::{
    CancelEnd, CancelOptions, Cancelled, HandOverEnd, HandOverOptions, HandOverResults, cancel,
    run as hand_over, with_drivers,
};
pub use plan::{DrainRequestToPlan, HandedOver, PlanOptions, PlanTarget, plan, plan_with_room};
pub use plan::{Planned, PlannedTrigger};
pub use progress::{Progress, Stage};
pub use status::{StatusNews, StatusOptions, overview, status};

/// How long a refused read that a command can do without may be a hiccup: whoever typed the command can type it again.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(1);
