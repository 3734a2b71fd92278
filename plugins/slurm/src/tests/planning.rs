//! The plan: Slurm pods last, the rest unchanged.

use scupper_sdk::Verdict;
use scupper_sdk::testing::{Host, pod};

use super::slurmd;
use crate::Slurm;

#[test]
fn slurm_pods_are_evicted_last_and_the_rest_of_the_plan_is_unchanged() {
    let host = Host::new();
    host.pods([
        slurmd("worker-0", &[]),
        pod("shop/cart"),
        slurmd("worker-1", &["Idle"]),
        pod("kube-system/proxy").of_daemon_set(),
    ]);
    let plan = host.plan::<Slurm>().unwrap();
    assert_eq!(
        plan.waves(),
        ["all: shop/cart", "slurm: slurm/worker-0 slurm/worker-1"]
    );
    assert_eq!(plan.plan().decisions, host.draft().plan().decisions);
}

#[test]
fn the_driver_is_evicted_after_them() {
    let host = Host::new();
    let mut driver = pod("scupper/driver");
    driver.driver = true;
    host.pods([driver, slurmd("worker-0", &[]), pod("shop/cart")]);
    let waves = host.plan::<Slurm>().unwrap().waves();
    assert_eq!(
        waves,
        [
            "all: shop/cart",
            "slurm: slurm/worker-0",
            "driver: scupper/driver"
        ]
    );
}

#[test]
fn a_slurm_pod_that_stays_is_not_moved() {
    let host = Host::new();
    host.pods([slurmd("worker-0", &[]).of_daemon_set(), pod("shop/cart")]);
    assert_eq!(host.plan::<Slurm>().unwrap().waves(), ["all: shop/cart"]);
}

#[test]
fn without_slurm_pods_the_draft_is_the_plan() {
    let host = Host::new();
    host.pods([pod("shop/cart"), pod("shop/db")]);
    assert_eq!(host.plan::<Slurm>().unwrap().plan(), host.draft().plan());
}

#[test]
fn an_unmatched_slurm_pod_refuses_the_drain() {
    let host = Host::new();
    let other_label = |name: &str| pod(name).with_label("app.kubernetes.io/name", "worker");
    let mut owned = other_label("slurm/owned");
    if let Some(owner) = &mut owned.controller {
        "slinky.slurm.net/v1beta1".clone_into(&mut owner.api_version);
        "NodeSet".clone_into(&mut owner.kind);
    }
    host.pods([
        slurmd("worker-0", &["Idle"]),
        pod("shop/cart"),
        owned,
        other_label("slurm/labelled").with_label("nodeset.slinky.slurm.net/pod-index", "3"),
        other_label("slurm/mirrored").with_condition("SlurmNodeStateAllocated", "True"),
    ]);
    let reasons = |host: &Host| {
        let plan = host.plan::<Slurm>().unwrap();
        let refused = plan.plan().decisions.iter();
        let refused = refused.filter(|decision| decision.verdict == Verdict::Refuse);
        refused
            .map(|decision| decision.reason.clone())
            .collect::<Vec<_>>()
    };
    let refused = reasons(&host);
    for sign in [
        "a pod of a NodeSet",
        "label nodeset.slinky.slurm.net/pod-index",
        "condition SlurmNodeStateAllocated",
    ] {
        let says =
            format!("looks like a Slurm worker ({sign}), but has no label app.kubernetes.io/name=slurmd");
        assert!(
            refused.iter().any(|reason| reason.starts_with(&says)),
            "{refused:?}"
        );
    }
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused.iter().all(|reason| reason.len() <= 256), "{refused:?}");
    host.config("unmatched-slurm-pods", "ignore");
    assert!(reasons(&host).is_empty());
}

#[test]
fn a_slurm_pod_of_another_namespace_refuses_the_drain() {
    let host = Host::new();
    host.config("namespace", "slinky");
    host.pods([slurmd("worker-0", &["Allocated"]), pod("shop/cart")]);
    let plan = host.plan::<Slurm>().unwrap();
    let refused: Vec<_> = plan
        .plan()
        .decisions
        .iter()
        .filter(|decision| decision.verdict == Verdict::Refuse)
        .collect();
    let [decision] = refused.as_slice() else {
        panic!("{refused:?}")
    };
    assert!(
        decision
            .reason
            .contains("is not in a namespace of `namespace`: slurm"),
        "{}",
        decision.reason
    );
    host.config("way", "slurmrestd");
    host.config("url", "http://127.0.0.1:6820");
    assert_eq!(
        host.plan::<Slurm>().unwrap().waves(),
        ["all: slurm/worker-0 shop/cart"]
    );
}

#[test]
fn with_a_slurm_node_for_each_pod_an_unmatched_slurm_pod_refuses_the_drain_too() {
    let host = Host::new();
    let worker = || pod("slurm/worker-0").with_label("nodeset.slinky.slurm.net/pod-index", "0");
    host.pods([worker()]);
    let refused = || {
        let plan = host.plan::<Slurm>().unwrap();
        let decisions = &plan.plan().decisions;
        decisions.iter().any(|decided| decided.verdict == Verdict::Refuse)
    };
    for (key, value) in [("way", "slurmrestd"), ("url", "http://slurm.example.com:6820")] {
        host.config(key, value);
    }
    assert!(!refused(), "slurmrestd lists the jobs of the node");
    host.config("slurm-node", "pods");
    assert!(refused());
    host.config("unmatched-slurm-pods", "ignore");
    assert!(!refused());
}
