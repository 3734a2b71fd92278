//! The real driver binary, beside a simulated API server and kubelet, with the real Slurm behind its node.

use std::path::Path;

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::driver_mode::DriverMode;
use crate::rig::module;
use crate::testbed::{NODE, Testbed};

/// The node's name in Kubernetes.
pub(crate) const WORKER: &str = "worker-1";

/// The node and these objects. `drain` is that part of `scupper.yaml`. No driver runs yet.
pub(crate) async fn node(
    testbed: &Testbed,
    config: &[(&str, &str)],
    drain: Value,
    objects: Vec<Value>,
) -> DriverMode {
    DriverMode::new(WORKER, objects, drain, policies(testbed, config)).await
}

/// `policies` of `scupper.yaml`, with additional configuration.
pub(crate) fn policies(testbed: &Testbed, config: &[(&str, &str)]) -> Value {
    json!([policy(&testbed.url(), &testbed.token_file(), config)])
}

/// The operator's configuration for this Slurm and this token.
pub(crate) fn policy(url: &str, token: &Path, more: &[(&str, &str)]) -> Value {
    let mut config = json!({
        "way": "slurmrestd", "url": url, "slurm-node-table": format!("{WORKER}={NODE}"), "poll-seconds": "1",
    });
    for (key, value) in more {
        config[*key] = json!(value);
    }
    json!({
        "name": "slurm", "module": module(), "config": config,
        "grants": {
            "events": ["node"],
            "http": [{
                "origin": url, "methods": ["GET", "POST", "DELETE"], "paths": ["/slurm/"], "networks": ["loopback"],
            }],
            "secrets": [{"name": "token", "file": token, "origins": [url]}],
        },
    })
}

/// As another driver's event leaves the node: the kubelet calls this one again.
pub(crate) fn forget_the_last_event(node: &DriverMode) {
    let forget = |node: &mut Value| {
        let conditions = node["status"]["conditions"].as_array_mut().unwrap();
        conditions.retain(|condition| condition["type"] != "LifecycleTransition");
    };
    node.api.store().edit("nodes", "", WORKER, forget).unwrap();
}

/// A Slurm pod, as slurm-operator labels it.
pub(crate) fn slurm_pod(name: &str) -> Value {
    let pod = objects::pod("slurm", name, WORKER).owner_replicaset("slurmd");
    pod.label("app.kubernetes.io/name", "slurmd").build()
}

/// The condition `Ready` of a node whose machine has been off for long.
pub(crate) fn is_off() -> Value {
    json!({
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    })
}
