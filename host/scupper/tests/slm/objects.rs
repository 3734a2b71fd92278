//! The objects that scenarios put on the node.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::NODE;

/// A pod of a workload controller that runs on the node.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                                 "uid": "6f6d1a52-0000-4000-8000-000000000001", "controller": true}],
        },
        "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 30,
                 "containers": [{"name": "main", "image": "web"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// The same without a controller: without `--force` it blocks a drain.
pub(crate) fn unmanaged(name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["ownerReferences"] = json!([]);
    pod
}

/// It takes this long to terminate.
pub(crate) fn slow(mut pod: Value, takes: Duration) -> Value {
    pod["metadata"]["annotations"] = json!({"testbed/takes": takes.as_secs_f64().to_string()});
    pod
}

/// A budget over all pods of `pod` that allows no disruption.
pub(crate) fn closed_budget() -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    })
}
