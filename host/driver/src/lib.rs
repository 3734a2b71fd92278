//! The composition root: the only room that names every other one. It starts things, wires them and ends them.
#![deny(missing_docs)]

mod access;
mod board;
mod cache;
pub mod calls;
mod claims;
mod cleanup;
mod cordon;
mod desk;
mod details;
mod doctor;
mod drive;
mod error;
mod handover;
mod label_selector;
mod lease;
mod left;
mod local;
mod metrics;
mod nodes;
mod notices;
mod opening;
mod options;
mod own;
mod own_node;
mod plan;
mod plugin;
mod policies;
mod probes;
mod publisher;
mod reporter;
mod said;
mod stale;
mod startup;
mod status;
mod surroundings;
mod terms;
mod too_late;
mod trace;
mod trial;
mod tries;
pub mod view;
mod writer;

pub use cleanup::{CleanupOptions, cleanup};
pub use doctor::{DoctorOptions, Finding, FindingState, doctor};
pub use error::AppError;
pub use error::chain;
pub use handover::{
    CancelOptions, Cancelled, End, HandOverError, HandOverOptions, Handed, Typed, cancel, run as hand_over,
};
pub use label_selector::parse as parse_selector;
pub use local::TRIGGER as COMMAND;
pub use local::{Ended, LocalError, LocalOptions, run as run_locally};
pub use nodes::{Nodes, names as node_names};
pub use options::{PluginOptions, PoliciesOptions};
pub use own::own_pod_from_env;
pub use plan::{PlanOptions, Planned, plan};
pub use plugin::Plugin;
pub use reporter::Output;
pub use scupper_triggers::cordon::TRIGGER as CORDON;
pub use status::{StatusOptions, status};
pub use terms::{eviction_timeout, settings, sla};
pub use trial::{Trial, try_policies};
