//! The commands that deal with nodes as `kubectl` does: `plan`, `drain`, `uncordon`, `cancel`, `status`.
//!
//! Their flags are those of `kubectl drain`, with its defaults. `scupper_driver` carries them out.

mod args;
mod cancel;
mod drain;
mod handover;
mod options;
mod plan;
mod plan_options;
mod plan_scenario;
mod shown;
mod status;

pub(crate) use args::{
    CancelArgs, DrainNodesArgs, DryRun, NodesArgs, PlanArgs, PlannedByArgs, StatusArgs, UncordonArgs,
};
pub(super) use cancel::run as cancel;
pub(super) use drain::{drain, uncordon};
pub use plan::plan_for_people;
pub(super) use plan::{inform_of_drivers, run as plan};
pub(crate) use plan_options::PlannedBy;
pub(super) use plan_options::of_nodes as plan_options_of;
#[cfg(test)]
pub(crate) use plan_scenario::SaveError;
pub(super) use status::run as status;
