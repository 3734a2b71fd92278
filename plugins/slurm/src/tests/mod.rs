//! Tests the policy without wasm and without a cluster.

mod configuration;
mod operator;
mod planning;
mod slurmrestd;

use scupper_sdk::{
    Pod,
    testing::{self, Host},
};

/// The annotation that slurm-operator reads.
const REASON: &str = "nodeset.slinky.slurm.net/node-cordon-reason";

/// A `slurmd` pod whose Slurm node is in these states.
fn slurmd(name: &str, states: &[&str]) -> Pod {
    let pod = testing::pod(&format!("slurm/{name}")).with_label("app.kubernetes.io/name", "slurmd");
    states.iter().fold(pod, |pod, state| {
        pod.with_condition(&format!("SlurmNodeState{state}"), "True")
    })
}

/// A host whose node has one busy Slurm pod and one plain pod.
fn busy_host() -> Host {
    let host = Host::new();
    host.pods([
        slurmd("worker-0", &["Allocated", "Drain"]),
        testing::pod("shop/cart"),
    ]);
    host
}
