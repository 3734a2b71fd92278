//! The request, policies, node, pods and budgets of the scripts.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{
    Budget, Controller, Deletion, HookPhase, Intent, Node, Pod, PodPhase, PodRef, PolicyInfo, Request,
    Selector, Settings, Time, Uid, UnhealthyPods,
};

use super::START;

pub(crate) fn request() -> Request {
    Request {
        id: "event-uid".to_owned(),
        name: "drain-node-1".to_owned(),
        trigger: "LifecycleEvent".to_owned(),
        intent: Intent::Drain,
        node: "node-1".to_owned(),
        deadline: None,
        settings: Settings::default(),
        policies: Vec::new(),
    }
}

pub(crate) fn uncordon_request() -> Request {
    Request {
        id: "uncordon-uid".to_owned(),
        intent: Intent::Uncordon,
        ..request()
    }
}

pub(crate) fn planner(name: &str) -> PolicyInfo {
    PolicyInfo {
        name: name.to_owned(),
        planner: true,
        ..PolicyInfo::default()
    }
}

pub(crate) fn hooks(name: &str, phases: &[HookPhase]) -> PolicyInfo {
    PolicyInfo {
        name: name.to_owned(),
        phases: phases.to_vec(),
        ..PolicyInfo::default()
    }
}

pub(crate) fn node() -> Node {
    Node {
        name: "node-1".to_owned(),
        uid: Uid::new("node-uid"),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        unschedulable: false,
        conditions: Vec::new(),
        checkpoint: None,
        cancel: None,
        resource_version: "100".to_owned(),
    }
}

/// A running pod of a ReplicaSet; its UID is its name.
pub(crate) fn pod(name: &str) -> Pod {
    Pod {
        id: PodRef {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            uid: Uid::new(name),
        },
        node: "node-1".to_owned(),
        labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
        annotations: BTreeMap::new(),
        controller: Some(controller("ReplicaSet", "rs")),
        phase: PodPhase::Running,
        ready: true,
        conditions: Vec::new(),
        priority: 0,
        priority_class: String::new(),
        grace_seconds: 30,
        created: Time::from_millis(0),
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

/// The same pod while it terminates.
pub(crate) fn ending(pod: Pod) -> Pod {
    let deletion = Deletion {
        at: START + Duration::from_secs(30),
        grace_seconds: 30,
    };
    Pod {
        deletion: Some(deletion),
        ..pod
    }
}

pub(crate) fn controller(kind: &str, name: &str) -> Controller {
    Controller {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: Uid::new(format!("{name}-uid")),
        missing: false,
    }
}

/// A budget for every pod with [`pod`]'s label.
pub(crate) fn budget(allowed: i32) -> Budget {
    Budget {
        namespace: "ns".to_owned(),
        name: "pdb".to_owned(),
        selector: Selector {
            labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
            ..Selector::default()
        },
        unhealthy_pods: UnhealthyPods::IfHealthyBudget,
        disruptions_allowed: allowed,
        current_healthy: 2 + allowed,
        desired_healthy: 2,
        expected_pods: 2,
        limit: None,
        observed: true,
    }
}
