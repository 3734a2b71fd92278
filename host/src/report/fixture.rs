//! A drain, its node and its pods, for the tests of this edge and of those who compose it.

use std::collections::BTreeMap;

use scupper_engine::{Checkpoint, Intent, Node, Phase, PodRef, Request, Settings, Time, Uid};

/// What the node keeps of a drain without hooks or a deadline.
pub(crate) fn mark(trigger: &str, phase: Phase) -> Checkpoint {
    Checkpoint {
        node: None,
        id: "id".into(),
        name: "drain-worker-1".into(),
        trigger: trigger.into(),
        phase,
        started: Time::default(),
        deadline: None,
        own_cordon: true,
        inherited: false,
        cancelled: None,
        hooks: Vec::new(),
        done: Vec::new(),
        returns: BTreeMap::new(),
    }
}

/// The cordoned node of a drain.
pub(crate) fn node(mark: Checkpoint) -> Node {
    Node {
        name: "worker-1".into(),
        uid: Uid("n".into()),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        unschedulable: true,
        conditions: Vec::new(),
        checkpoint: Some(mark),
        resource_version: "1".into(),
    }
}

pub(crate) fn request() -> Request {
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

pub(super) fn pod(name: &str) -> PodRef {
    PodRef {
        namespace: "shop".into(),
        name: name.into(),
        uid: Uid(name.into()),
    }
}
