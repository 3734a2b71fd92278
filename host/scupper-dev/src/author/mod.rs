//! Tools for policy authors: scenarios without a cluster, plans for a snapshot, and measurements.
//!
//! ```text
//!  scenario file ─► form ─┬─► config ─► policies (real wasm, real host) ─┐
//!                         └─► memory_cluster (in its own time) ──────────┴─► runner (real engine) ─► assertions ─► differences
//! ```
//!
//! It must not know how to reach a real cluster, and prints nothing.

mod assertions;
mod changes;
mod cluster_access;
mod comparison;
mod drain_requests;
mod dry_run;
#[cfg(test)]
mod error_texts;
mod fact_objects;
mod form;
mod memory_cluster;
mod mock_servers;
mod new;
mod offline;
mod recorded;
mod recorded_policies;
mod runner;
mod scenario;
mod sdk;
mod shorthand;
mod snapshot;
mod specs;
mod suite;
mod values;

pub(crate) use assertions::Difference;
pub(crate) use changes::{Changes, NoSuchPolicy};
pub(crate) use comparison::{Comparison, DifferentResult, Edition, Unknown, compare};
pub(crate) use dry_run::{DryRun, Figures, Stepped};
pub(crate) use new::{Kind, new};
pub(crate) use offline::{OfflineRuntime, PolicyLoadError};
pub(crate) use recorded::{NotPlayable, RecordedCluster};
pub(crate) use scenario::{ScenarioError, ScenarioResult, run_scenario};
pub(crate) use snapshot::Snapshot;
pub(crate) use specs::PolicyChoice;
pub(crate) use suite::{Case, cases};
