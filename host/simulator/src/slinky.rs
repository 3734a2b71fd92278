//! Simulates Slinky's slurm-operator on the API simulator: on a cordoned node it drains the Slurm node of each `slurmd` pod, and
//! copies Slurm's states into the pod's conditions.
//!
//! Jobs are simulated: with the annotation `testbed/job-ends: "3"` on a pod its job ends 3 s after the drain of its Slurm node
//! began. It does not know the driver.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::api::Store;

/// The poll interval of the operator.
const TICK: Duration = Duration::from_millis(50);
const REASON: &str = "nodeset.slinky.slurm.net/node-cordon-reason";

/// Something that the operator did, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The Slurm node of a pod is being drained, with this reason.
    Draining {
        /// `namespace/name`
        pod: String,
        /// The reason for Slurm.
        reason: String,
    },
    /// The job on a pod has ended.
    JobEnded {
        /// `namespace/name`
        pod: String,
    },
    /// The Slurm node of a pod gets jobs again.
    Resumed {
        /// `namespace/name`
        pod: String,
    },
}

/// Runs until dropped.
pub async fn run(store: Store, tell: impl Fn(Happening)) {
    let mut began: HashMap<String, Instant> = HashMap::new();
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        for pod in store.list("pods").iter().filter(|pod| is_slurmd(pod)) {
            for happening in observe(&store, &mut began, pod) {
                tell(happening);
            }
        }
    }
}

fn observe(store: &Store, began: &mut HashMap<String, Instant>, pod: &Value) -> Vec<Happening> {
    let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    let full = format!("{namespace}/{name}");
    let uid = text(pod, "/metadata/uid").to_owned();
    let Some(node) = store.get("nodes", "", text(pod, "/spec/nodeName")) else {
        return Vec::new();
    };
    let cordoned = node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    if !cordoned {
        if began.remove(&uid).is_none() {
            return Vec::new();
        }
        set(store, pod, &["SlurmNodeStateDrain"], &[]);
        return vec![Happening::Resumed { pod: full }];
    }
    let Some(since) = began.get(&uid) else {
        began.insert(uid, Instant::now());
        // Slurm keeps the first reason.
        let annotated = node
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(REASON));
        let default = format!("Node ({}) was cordoned", text(&node, "/metadata/name"));
        let reason = annotated.and_then(Value::as_str).map_or(default, str::to_owned);
        set(store, pod, &[], &[("SlurmNodeStateDrain", &reason)]);
        return vec![Happening::Draining { pod: full, reason }];
    };
    let ends = pod
        .pointer("/metadata/annotations")
        .and_then(|all| all.get("testbed/job-ends"));
    let ends = ends
        .and_then(Value::as_str)
        .and_then(|ends| ends.parse().ok())
        .map(Duration::from_secs_f64);
    let over = ends.is_some_and(|ends| since.elapsed() >= ends);
    if !over || !busy(pod) {
        return Vec::new();
    }
    set(
        store,
        pod,
        &["SlurmNodeStateAllocated", "SlurmNodeStateMixed"],
        &[("SlurmNodeStateIdle", "")],
    );
    vec![Happening::JobEnded { pod: full }]
}

/// Removes and adds conditions. An ended state is removed, never set to False.
fn set(store: &Store, pod: &Value, remove: &[&str], add: &[(&str, &str)]) {
    let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    let now = jiff::Timestamp::now().to_string();
    // The pod may be gone meanwhile.
    let _gone = store.edit("pods", namespace, name, |pod| {
        let Some(Value::Array(conditions)) = pod.pointer_mut("/status/conditions") else {
            return;
        };
        conditions.retain(|condition| !remove.contains(&text(condition, "/type")));
        for (kind, message) in add {
            let condition =
                json!({"type": kind, "status": "True", "message": message, "lastTransitionTime": now});
            conditions.push(condition);
        }
    });
}

fn busy(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        matches!(
            text(condition, "/type"),
            "SlurmNodeStateAllocated" | "SlurmNodeStateMixed"
        )
    })
}

fn is_slurmd(pod: &Value) -> bool {
    let labels = pod.pointer("/metadata/labels");
    labels
        .and_then(|labels| labels.get("app.kubernetes.io/name"))
        .and_then(Value::as_str)
        == Some("slurmd")
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
