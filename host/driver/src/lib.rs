//! The driver: composes triggers, engine, cluster, policies and reports.
//!
//! ```text
//!  plugin ─┬─► policies ─┐
//!          └─────────────┴─► adapters ─► manager ─► occupancy
//!  local ───► policies
//! ```
//!
//! Folders import each other only in the direction of these arrows, over any distance. `local` does the same for a
//! command in a terminal. `scupper_runner` runs each drain.
#![deny(missing_docs)]

mod adapters;
mod error;
#[cfg(test)]
mod error_texts;
mod local;
mod manager;
mod occupancy;
mod options;
mod plugin;
mod policies;

pub use adapters::drain_request_plan::{DrainRequestPlanError, plan_drain_request};
pub use adapters::drain_request_trigger::kind as drain_request_kind;
pub use error::DriverError;
pub use local::nodes::{NodeSelection, names as node_names, resolve as resolve_nodes, resolve_or_recall};
pub use local::{
    CordonsAhead, DrainingProcess, LocalOptions, NodeDrainResult, RollBack, back_in_service,
    draining_process, keeping_cordon, remove_taint, run as run_locally, would_begin_at_drivers,
};
pub use occupancy::{LocalError, NodeOccupancy, OccupancyOverrides, has_foreign_cordon};
pub use options::{KubeletPluginOptions, PoliciesOptions};
pub use plugin::KubeletPlugin;
pub use plugin::own_pod::own_pod_from_env;
pub use policies::ACTIVE_POLICIES;
pub use policies::check_policies::{PolicyCheckResult, check_policies};
pub use policies::{LoadedPolicies, load as load_policies};
pub use scupper_cluster::{OUT_OF_SERVICE, OUT_OF_SERVICE_TAINT};
pub use scupper_common::error::chain;
