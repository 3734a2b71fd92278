//! The commands that do not drain in their own process: plan, status, hand-over to the driver, cancel, doctor, cleanup.
//! They return results; `node`, `doctor` and `commands` print them.

use std::time::Duration;

mod cleanup;
mod details;
mod doctor;
mod error;
mod handover;
mod plan;
mod policy_environment;
mod pre_flight;
mod progress;
mod status;

pub(crate) use cleanup::{CleanedUp, CleanupOptions, cleanup};
pub(crate) use doctor::{DoctorOptions, Finding, FindingState, doctor};
pub(crate) use error::CommandError;
pub(crate) use handover::HandOverError;
pub(crate) use handover::{
    CancelEnd, CancelOptions, Cancelled, HandOverEnd, HandOverOptions, HandOverResults, cancel,
    run as hand_over,
};
pub(crate) use plan::{DrainRequestToPlan, HandedOver, PlanOptions, PlanTarget, plan, plan_with_room};
pub use plan::{Planned, PlannedTrigger};
pub(crate) use progress::{Progress, Stage};
pub(crate) use status::{StatusNews, StatusOptions, overview, status};

/// How long a refused read that a command can do without may be a hiccup: whoever typed the command can type it again.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(1);
