//! A node and pods as a policy receives them.

use std::collections::BTreeMap;

use scupper_engine::{Condition, Controller, Node, Pod, PodPhase, PodRef, Time, Uid};

const CREATED: Time = Time::from_millis(1_780_000_000_000);

pub(crate) fn node() -> Node {
    Node {
        name: "worker-1".to_owned(),
        uid: Uid::new("0f0f0f0f-0000-4000-8000-000000000000"),
        labels: labels("worker"),
        annotations: BTreeMap::new(),
        unschedulable: true,
        conditions: Vec::new(),
        checkpoint: None,
        cancel: None,
        resource_version: "1".to_owned(),
    }
}

/// Pods with six labels and four conditions each, in three priorities.
pub(crate) fn pods(count: usize) -> Vec<Pod> {
    (0..count).map(pod).collect()
}

/// The same, where the first few are Slurm workers with jobs.
pub(crate) fn slurm_pods(slurm: usize, count: usize) -> Vec<Pod> {
    let mut pods = pods(count);
    for pod in pods.iter_mut().take(slurm) {
        pod.labels
            .insert("app.kubernetes.io/name".to_owned(), "slurmd".to_owned());
        for kind in ["SlurmNodeStateAllocated", "SlurmNodeStateDrain"] {
            pod.conditions.push(condition(kind));
        }
    }
    pods
}

fn pod(number: usize) -> Pod {
    let uid = Uid::new(format!("{number:08x}-1111-4222-8333-444444444444"));
    let name = format!("shop-7c9f5d6b4-{number:05}");
    Pod {
        id: PodRef {
            namespace: "shop".to_owned(),
            name,
            uid,
        },
        node: "worker-1".to_owned(),
        labels: labels("shop"),
        annotations: BTreeMap::new(),
        controller: Some(Controller {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: "shop-7c9f5d6b4".to_owned(),
            uid: Uid::new("22222222-1111-4222-8333-444444444444"),
            missing: false,
        }),
        phase: PodPhase::Running,
        ready: true,
        conditions: ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
            .map(condition)
            .into(),
        priority: [0, 1_000, 2_000_000_000][number % 3],
        priority_class: String::new(),
        grace_seconds: 30,
        created: CREATED,
        deletion: None,
        finalizers: Vec::new(),
        empty_dir: false,
        host_network: false,
        hostname: String::new(),
        cordon_toleration: None,
        volume_claims: Vec::new(),
        host_paths: Vec::new(),
    }
}

fn condition(kind: &str) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: "True".to_owned(),
        reason: String::new(),
        message: String::new(),
        since: Some(CREATED),
    }
}

fn labels(app: &str) -> BTreeMap<String, String> {
    let keys = [
        "name",
        "instance",
        "version",
        "component",
        "part-of",
        "managed-by",
    ];
    keys.into_iter()
        .map(|key| (format!("app.kubernetes.io/{key}"), app.to_owned()))
        .collect()
}
