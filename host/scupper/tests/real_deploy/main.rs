//! The installation by `deploy/`, on a real API server: the manifests unchanged, drivers with the token of a pod of the
//! DaemonSet and with nothing else, and each permission removed in turn.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    dead_code,
    reason = "helpers of tests, shared with the benchmark"
)]

mod charts;
mod cloud;
mod container;
mod drain_requests;
mod facts;
#[path = "../support/guests.rs"]
mod guests;
mod installed;
#[path = "../support/limit.rs"]
mod limit;
mod machine;
mod overlays;
mod own_node;
mod raises;
mod restarts;
mod rights;
mod scripts;
#[path = "../support/skip.rs"]
mod skip;
mod slurm;
mod stolen_token;
#[path = "../../benches/drain/testbed.rs"]
mod testbed;
mod triggers;

/// One control plane at a time: each uses most of a small machine.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
