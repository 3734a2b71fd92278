//! One drain: its engine with orders, commands and answers, under the node's Lease, and what is reported of it.
//!
//! ```text
//! leased_runner ─► engine_runner ─┬─► policies of the host: pre_flight, out_of_service, notify
//!                                 ├─► policy_calls ─► node_snapshot
//!                                 └─► reporter
//! plan_check ─► dry_run: only as far as the plan, without a Lease
//! ```
//!
//! It must not know who asks for drains, or how many there are.
#![deny(missing_docs)]

mod deps;
mod dry_run;
mod engine_runner;
pub mod last_known;
pub mod leased_runner;
mod node_snapshot;
pub mod node_watch;
mod notify;
pub mod orders;
pub mod out_of_service;
pub mod plan_check;
pub mod policy_calls;
pub mod pre_flight;
pub mod reporter;

pub use deps::RunnerDeps;
pub use dry_run::{DryRun, NoPlan, dry_run};
pub use engine_runner::{EngineRunner, shadows};
pub use node_snapshot::NodeSnapshot;
