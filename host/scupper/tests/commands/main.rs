//! `scupper plan`, `drain`, `uncordon`, `cancel` and `status` as people type them, on a simulated cluster.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests"
)]

mod big_nodes;
mod cancelling;
mod checking;
mod cleaning_up;
#[path = "../support/clock_steps.rs"]
mod clock_library;
mod clock_steps;
mod colours;
mod completing;
mod conditions;
mod connecting;
mod cordoning_first;
mod dev_program;
mod diagnosing;
mod displaying;
mod draining;
mod events;
mod few_rights;
mod flags;
mod following;
mod forcing;
mod forecasting;
mod foreign_objects;
#[expect(dead_code, reason = "other suites list the guests")]
#[path = "../support/guests.rs"]
mod guests;
mod handing_over;
mod joining;
mod kubelet_node;
mod lease_conflicts;
#[path = "../support/limit.rs"]
mod limit;
mod local_data;
mod messages;
mod node_is_off;
mod notifying;
mod outputs;
#[path = "../support/pairs.rs"]
mod pairs;
mod planning;
mod policies;
mod pre_flight;
#[path = "../support/program.rs"]
mod program;
mod proxies;
mod raising;
mod recording;
mod reporting;
mod returning;
mod rig;
#[path = "../support/schema.rs"]
mod schema;
mod shadowing;
mod status;
mod stopping;
mod surging;
mod taking_over;
mod terminal;
mod unclaimed;
mod uncordoning;
mod undoing;
mod volumes;
mod without_driver;
mod without_lease;
