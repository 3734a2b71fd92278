//! What policies learn of the plan: which pods leave.

use std::sync::Arc;

use scupper_engine::{HookPhase, HookStep, StepOutcome, Subject, Uid};
use scupper_policy::{Policies, StepCall};
use scupper_policy_spec::PolicySpec;

use crate::facts::{asks, learned, load};
use crate::support::{FakeCluster, drain, node, pod, short};

async fn step(policies: &Policies, leaving: Vec<Uid>) -> String {
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
        drain: drain(),
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
    let leaving = ["uid-3", "uid-1"].map(|uid| Uid(uid.to_owned()));
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
    let many: Vec<Uid> = (0..10_000).map(|number| Uid(format!("{number:036}"))).collect();
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
