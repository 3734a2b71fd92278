//! A drain, its node and its pods, for the tests of this crate and of the crates that use it.

use std::collections::BTreeMap;

use scupper_engine::{Checkpoint, Intent, Node, Phase, Pod, PodPhase, PodRef, Request, Settings, Time, Uid};

use super::status::{LeaseHolder, NodeStatus, StatusDetails};

/// A checkpoint of a drain without hooks and without a deadline.
pub fn mark(trigger: &str, phase: Phase) -> Checkpoint {
    Checkpoint {
        id: "id".into(),
        name: "drain-worker-1".into(),
        trigger: trigger.into(),
        intent: match phase {
            Phase::Uncordoning => Intent::Uncordon,
            _ => Intent::Drain,
        },
        phase,
        own_cordon: true,
        ..Checkpoint::blank(Uid::new("n"), Time::default())
    }
}

/// The cordoned node of a drain.
pub fn node(mark: Checkpoint) -> Node {
    Node {
        name: "worker-1".into(),
        uid: Uid::new("n"),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        unschedulable: true,
        conditions: Vec::new(),
        checkpoint: Some(mark),
        cancel: None,
        resource_version: "1".into(),
    }
}

/// A drain without a deadline.
pub fn request() -> Request {
    Request {
        id: "u-1".into(),
        name: "drain-worker-1".into(),
        trigger: "LifecycleEvent".into(),
        intent: Intent::Drain,
        node: "worker-1".into(),
        deadline: None,
        settings: Settings::default(),
        policies: Vec::new(),
    }
}

/// A pod of this name.
pub fn pod(name: &str) -> PodRef {
    PodRef {
        namespace: "shop".into(),
        name: name.into(),
        uid: Uid::new(name),
    }
}

/// A running pod whose label is its name.
pub fn running(name: &str) -> Pod {
    Pod {
        id: pod(name),
        node: "worker-1".into(),
        labels: [("app".to_owned(), name.to_owned())].into(),
        annotations: BTreeMap::new(),
        controller: None,
        phase: PodPhase::Running,
        ready: true,
        conditions: Vec::new(),
        priority: 0,
        priority_class: String::new(),
        grace_seconds: 30,
        created: Time::default(),
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

/// The node alone, without a driver, pods or LifecycleEvents.
pub fn status(mark: Checkpoint) -> NodeStatus {
    NodeStatus {
        node: node(mark),
        driver: None,
        pods: Vec::new(),
        budgets: Vec::new(),
        lifecycle_events: Vec::new(),
        lease_holder: LeaseHolder::Unknown,
        leased_drain: None,
        details: StatusDetails::default(),
    }
}
