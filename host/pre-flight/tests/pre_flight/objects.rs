//! Pods, budgets and plans of the tests.

use std::collections::BTreeMap;

use scupper_engine::{
    Budget, BudgetLimit, Controller, Decision, Plan, Pod, PodPhase, PodRef, Selector, Time, Uid,
    UnhealthyPods, Verdict, Wave,
};

pub(crate) type Labels = BTreeMap<String, String>;

pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    let pairs = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    pairs.collect()
}

/// A pod on the node, running and ready.
pub(crate) fn pod(name: &str, labels: Labels, controller: Option<(&str, &str)>) -> Pod {
    let controller = controller.map(|(kind, uid)| Controller {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name: uid.to_owned(),
        uid: Uid::new(uid),
        missing: false,
    });
    Pod {
        id: PodRef {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: Uid::new(format!("uid-of-{name}")),
        },
        node: "node-1".to_owned(),
        labels,
        annotations: BTreeMap::new(),
        controller,
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

/// A budget that allows nothing now. Its status fits `healthy` healthy pods of as many expected.
pub(crate) fn budget(name: &str, labels: Labels, limit: BudgetLimit, healthy: i32) -> Budget {
    Budget {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        selector: Selector {
            labels,
            ..Selector::default()
        },
        unhealthy_pods: UnhealthyPods::IfHealthyBudget,
        disruptions_allowed: 0,
        current_healthy: healthy,
        desired_healthy: healthy,
        expected_pods: healthy,
        limit: Some(limit),
        observed: true,
    }
}

/// Every pod of these is evicted, in one wave.
pub(crate) fn evict_all(pods: &[Pod]) -> Plan {
    let decision = |pod: &Pod| Decision {
        pod: pod.id.uid.clone(),
        verdict: Verdict::Evict,
        reason: String::new(),
        policy: String::new(),
    };
    let wave = Wave {
        name: "all".to_owned(),
        pods: pods.iter().map(|pod| pod.id.uid.clone()).collect(),
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: String::new(),
    };
    Plan {
        decisions: pods.iter().map(decision).collect(),
        waves: vec![wave],
        ..Plan::default()
    }
}
