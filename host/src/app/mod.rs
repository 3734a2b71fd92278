//! The composition root: the only room that names every other one. It starts things, wires them and ends them.

mod access;
pub mod author;
mod board;
mod cache;
mod calls;
mod claims;
mod cleanup;
pub mod config;
mod cordon;
mod desk;
mod doctor;
mod drive;
mod error;
mod handover;
mod label_selector;
mod lease;
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
mod stale;
mod status;
mod terms;
mod trace;
mod trial;
mod view;

pub(crate) use crate::triggers::cordon::TRIGGER as CORDON;
pub use cleanup::{CleanupOptions, cleanup};
pub use doctor::{DoctorOptions, Finding, FindingState, doctor};
pub use error::AppError;
pub(crate) use error::chain;
pub use handover::{
    CancelOptions, Cancelled, End, HandOverError, HandOverOptions, Handed, Typed, cancel, run as hand_over,
};
pub(crate) use label_selector::parse as parse_selector;
pub(crate) use local::TRIGGER as COMMAND;
pub use local::{Ended, LocalError, LocalOptions, run as run_locally};
pub use nodes::Nodes;
pub use options::{PluginOptions, PoliciesOptions};
pub use own::own_pod_from_env;
pub use plan::{PlanOptions, Planned, plan};
pub use plugin::Plugin;
pub use reporter::Output;
pub use status::{StatusOptions, status};
pub(crate) use terms::{eviction_timeout, settings, sla};
pub use trial::{Trial, try_policies};
