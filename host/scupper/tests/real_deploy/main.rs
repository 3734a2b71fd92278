//! What `deploy/` installs, on a real API server: the manifests as they are, drivers with the token of a pod of the
//! DaemonSet and with nothing else, and each right taken away.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    dead_code,
    reason = "helpers of tests, shared with the benchmark"
)]

mod charts;
mod cloud;
mod container;
mod doors;
mod installed;
#[path = "../support/limit.rs"]
mod limit;
mod machine;
mod overlays;
mod own_node;
mod rights;
#[path = "../support/skip.rs"]
mod skip;
mod slurm;
#[path = "../../benches/drain/testbed.rs"]
mod testbed;

/// One control plane at a time: each takes most of a small machine.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
