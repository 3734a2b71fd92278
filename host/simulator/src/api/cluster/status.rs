//! The status of a pod as a kubelet writes it.

use serde_json::{Value, json};

use super::super::fields::{self, items, text};

/// It runs.
pub(crate) fn run(pod: &mut Value, ready: bool, now: &str) {
    fields::set(pod, "/status/phase", "Running".into());
    fields::set(pod, "/status/startTime", now.into());
    fields::set(pod, "/status/podIP", "10.0.0.1".into());
    let containers: Vec<Value> = items(pod, "/spec/containers")
        .iter()
        .map(|it| {
            json!({"name": text(it, "/name"), "image": text(it, "/image"), "imageID": "", "ready": ready,
                "restartCount": 0, "started": true, "state": {"running": {"startedAt": now}}, "lastState": {}})
        })
        .collect();
    fields::set(pod, "/status/containerStatuses", containers.into());
    for kind in ["PodScheduled", "Initialized"] {
        fields::set_condition(pod, json!({"type": kind, "status": "True"}), now);
    }
    set_ready(pod, ready, "", now);
}

/// Its readiness changes.
pub(crate) fn set_ready(pod: &mut Value, ready: bool, reason: &str, now: &str) {
    let status = if ready { "True" } else { "False" };
    for kind in ["ContainersReady", "Ready"] {
        let mut condition = json!({"type": kind, "status": status});
        if !reason.is_empty() {
            fields::set(&mut condition, "/reason", reason.into());
        }
        fields::set_condition(pod, condition, now);
    }
    if let Some(list) = pod
        .pointer_mut("/status/containerStatuses")
        .and_then(Value::as_array_mut)
    {
        for container in list {
            fields::set(container, "/ready", ready.into());
        }
    }
}

/// Its containers have ended.
pub(crate) fn finish(pod: &mut Value, exit: i64, now: &str) {
    fields::set(
        pod,
        "/status/phase",
        if exit == 0 { "Succeeded" } else { "Failed" }.into(),
    );
    set_ready(
        pod,
        false,
        if exit == 0 { "PodCompleted" } else { "PodFailed" },
        now,
    );
    let reason = if exit == 0 { "Completed" } else { "Error" };
    if let Some(list) = pod
        .pointer_mut("/status/containerStatuses")
        .and_then(Value::as_array_mut)
    {
        for container in list {
            let state = json!({"terminated": {"exitCode": exit, "reason": reason, "finishedAt": now}});
            fields::set(container, "/state", state);
            fields::set(container, "/started", false.into());
        }
    }
}
