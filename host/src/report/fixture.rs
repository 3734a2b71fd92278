//! A drain and its pods, for the tests of this edge.

use scupper_engine::{Intent, PodRef, Request, Settings, Uid};

pub(super) fn request() -> Request {
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
