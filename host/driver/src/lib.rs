//! The composition root: the only room that names every other one. It starts things, wires them and ends them.
#![deny(missing_docs)]

mod adapters;
mod cleanup;
mod details;
mod doctor;
mod error;
mod handover;
mod label_selector;
mod lease;
mod local;
mod manager;
mod nodes;
mod options;
mod plan;
mod plugin;
mod policies;
mod reporter;
mod runner;
mod status;

pub use cleanup::{CleanupOptions, cleanup};
pub use doctor::{DoctorOptions, Finding, FindingState, doctor};
pub use error::AppError;
pub use error::chain;
pub use handover::{
    CancelOptions, Cancelled, End, HandOverError, HandOverOptions, Handed, Typed, cancel, run as hand_over,
};
pub use label_selector::parse as parse_selector;
pub use local::TRIGGER as COMMAND;
pub use local::{LocalError, LocalOptions, NodeResult, run as run_locally};
pub use manager::drain_settings::{eviction_timeout, settings, sla};
pub use nodes::{Nodes, names as node_names};
pub use options::{PluginOptions, PoliciesOptions};
pub use plan::{PlanOptions, Planned, plan};
pub use plugin::Plugin;
pub use plugin::own_pod::own_pod_from_env;
pub use policies::policy_check::{PolicyCheck, check_policies};
pub use reporter::Output;
pub use runner::{policy_calls, view};
pub use scupper_triggers::cordon::TRIGGER as CORDON;
pub use status::{StatusOptions, status};
