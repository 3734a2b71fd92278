//! What policies learn of the plan: which pods leave.

use std::sync::Arc;

use scupper_engine::{HookPhase, HookStep, StepOutcome, Subject, Uid};
use scupper_policy::{DrainInfo, Policies, StepCall};
use scupper_policy_spec::PolicySpec;

use crate::facts::{asks, learned, load};
use crate::support::{FakeCluster, drain, node, pod, short};

async fn step(policies: &Policies, leaving: Vec<Uid>) -> String {
    step_of(policies, leaving, drain()).await
}

async fn step_of(policies: &Policies, leaving: Vec<Uid>, drain: DrainInfo<'_>) -> String {
    let (node, pods) = (node(), [pod(1), pod(2), pod(3)]);
    let step = HookStep {
        policy: "p".to_owned(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        state: Vec::new(),
        leaving,
    };
    let call = StepCall {
        step: &step,
        drain,
        node: &node,
        pods: &pods.iter().collect::<Vec<_>>(),
    };
    match policies.step(call).await {
        StepOutcome::Failed { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_step_learns_which_pods_leave_and_other_functions_learn_none() {
    let policies = load(&[asks("leaving\nleaving")], &Arc::new(FakeCluster::default()))
        .await
        .unwrap();
    let leaving = ["uid-3", "uid-1"].map(Uid::new);
    assert_eq!(
        step(&policies, leaving.to_vec()).await,
        "leaving [\"uid-3\", \"uid-1\"]; leaving [\"uid-3\", \"uid-1\"]"
    );
    assert_eq!(step(&policies, Vec::new()).await, "leaving []; leaving []");
    assert_eq!(
        learned(&policies, &[pod(1)], None).await,
        "leaving []; leaving []"
    );
    let checked = policies.check(Some(&node())).await;
    assert_eq!(checked[0].findings[0].message, "leaving []; leaving []");
}

#[tokio::test]
async fn asking_costs_the_time_and_the_memory_of_the_policy() {
    let many: Vec<Uid> = (0..10_000)
        .map(|number| Uid::new(format!("{number:036}")))
        .collect();
    let load = |questions: &'static str| async move {
        let spec = PolicySpec {
            limits: short(),
            ..asks(questions)
        };
        load(&[spec], &Arc::new(FakeCluster::default())).await.unwrap()
    };
    let counted = load("leaving count").await;
    assert_eq!(step(&counted, many.clone()).await, "leaving 10000");
    let hostile = load("leaving for ever").await;
    let stopped = step(&hostile, many).await;
    assert!(stopped.contains("CPU time"), "{stopped}");
}

#[tokio::test]
async fn a_step_learns_whether_the_machine_is_declared_off() {
    let policies = load(&[asks("machine")], &Arc::new(FakeCluster::default()))
        .await
        .unwrap();
    assert_eq!(step(&policies, Vec::new()).await, "machine-is-off false");
    let off = DrainInfo {
        machine_is_off: true,
        ..drain()
    };
    assert_eq!(step_of(&policies, Vec::new(), off).await, "machine-is-off true");
    assert_eq!(learned(&policies, &[pod(1)], None).await, "machine-is-off false");
}

#[tokio::test]
async fn steps_and_checks_learn_which_cluster_it_is_and_planners_do_not() {
    let policies = load(&[asks("cluster")], &Arc::new(FakeCluster::default()))
        .await
        .unwrap();
    let known = r#"cluster Ok("uid-of-cluster")"#;
    assert_eq!(step(&policies, Vec::new()).await, known);
    let checked = policies.check(Some(&node())).await;
    assert_eq!(checked[0].findings[0].message, known);
    let refused = learned(&policies, &[pod(1)], None).await;
    assert!(refused.starts_with("cluster Err(NotGranted("), "{refused}");
    let away = FakeCluster {
        away: true,
        ..FakeCluster::default()
    };
    let policies = load(&[asks("cluster")], &Arc::new(away)).await.unwrap();
    let away = step(&policies, Vec::new()).await;
    assert!(away.starts_with("cluster Err(Unavailable("), "{away}");
}
