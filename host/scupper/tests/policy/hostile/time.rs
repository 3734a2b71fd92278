//! Rows 1 to 3: guests that do not return.

use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{HookPhase, PlanAnswer, StepOutcome};
use scupper_policy::{CallFault, CallResult, LoadFault, Overrun, Policies};
use scupper_policy_spec::{Limits, PolicySpec};

use super::memory::Tide;
use super::{beside, load_short};
use crate::guests::wasi_guest;
use crate::support::{
    self, FakeCluster, failed_plan, grant, load, load_spec, plan, runtime, short, spec, step,
};

/// Within its 300 ms of CPU time a guest is interrupted about thirty times; a neighbour's step needs one or two of
/// these.
const STEPS: usize = 8;

pub(super) async fn row_01_a_loop_in_a_plan() {
    let policies = load_short("spins_in_plan").await;
    let (messages, steps) = beside(2, async || failed_plan(&policies).await).await;
    for message in messages {
        assert_eq!(
            message,
            "policy `p` failed in make-plan: it exceeded its limit of 300 ms of CPU time"
        );
    }
    assert!(steps >= 2 * STEPS, "the neighbour took {steps} steps");
    let spent = policies.usage()[0].most.cpu;
    assert!(spent < Duration::from_millis(600), "it used {spent:?}");
}

pub(super) async fn row_01_a_loop_in_a_step() {
    let policies = load_short("spins_in_step").await;
    let attack = async || step(&policies, HookPhase::BeforeDrain, b"").await;
    let (outcomes, steps) = beside(1, attack).await;
    let [StepOutcome::Failed { message, retry_after }] = outcomes.as_slice() else {
        panic!("{outcomes:?}")
    };
    assert_eq!(
        message,
        "policy `p` failed in step: it exceeded its limit of 300 ms of CPU time"
    );
    assert_eq!(*retry_after, Some(Duration::from_secs(10)));
    assert!(steps >= STEPS, "the neighbour took {steps} steps");
    let spent = policies.usage()[0].most.cpu;
    assert!(spent < Duration::from_millis(600), "it used {spent:?}");
}

pub(super) async fn row_01_many_loops_share_the_workers() {
    let policies = Arc::new(load_short("spins_in_plan").await);
    let _measured = Tide::watch();
    let calls = (0..8).map(|_| {
        let policies = Arc::clone(&policies);
        tokio::spawn(async move { failed_plan(&policies).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap().contains("CPU time"));
    }
    let echo = load("echo").await;
    assert!(matches!(plan(&echo, 3).await, PlanAnswer::Plan(_)));
}

pub(super) async fn row_01_a_call_that_is_dropped_leaves_nothing_behind() {
    let policies = load("spins_in_plan").await;
    let attack = async || tokio::time::timeout(Duration::from_millis(50), plan(&policies, 1)).await;
    let (dropped, _) = beside(5, attack).await;
    assert!(dropped.iter().all(Result::is_err));
    assert!(matches!(plan(&load("echo").await, 1).await, PlanAnswer::Plan(_)));
}

/// Refuses a policy that overruns its CPU time while it is loaded.
async fn never_loaded(name: &str) -> String {
    let Err(error) = load_spec(spec(name)).await else {
        panic!("`{name}` was loaded")
    };
    let (fault, text) = support::fault(error);
    assert!(
        matches!(&fault, LoadFault::Call(error) if matches!(error.fault, CallFault::Overrun(Overrun::Cpu(_)))),
        "{text}"
    );
    text
}

pub(super) async fn row_02_a_loop_in_describe() {
    let (texts, steps) = beside(1, async || never_loaded("spins_in_describe").await).await;
    assert!(
        texts[0].ends_with("policy `p` failed in describe: it exceeded its limit of 250 ms of CPU time"),
        "{texts:?}"
    );
    assert!(steps >= STEPS, "the neighbour took {steps} steps");
}

pub(super) async fn row_02_a_loop_at_the_start() {
    let (_, steps) = beside(1, async || never_loaded("spins_at_start").await).await;
    assert!(steps >= STEPS, "the neighbour took {steps} steps");
}

pub(super) async fn row_02_a_loop_while_arguments_are_given_and_while_answers_are_freed() {
    for name in ["spins_in_alloc", "spins_after"] {
        let policies = load_short(name).await;
        let (messages, steps) = beside(1, async || failed_plan(&policies).await).await;
        assert!(
            messages[0].ends_with("it exceeded its limit of 300 ms of CPU time"),
            "{name}: {messages:?}"
        );
        assert!(steps >= STEPS, "{name}: the neighbour took {steps} steps");
    }
}

fn sleepy() -> Limits {
    Limits {
        step_wall: Duration::from_millis(700),
        step_cpu: Duration::from_millis(100),
        ..short()
    }
}

pub(super) async fn row_03_waiting_for_a_cluster_that_never_answers() {
    let spec = PolicySpec {
        limits: sleepy(),
        grants: vec![
            grant("node-annotations:drain.example.com/"),
            grant("pod-annotations:drain.example.com/"),
        ],
        ..spec("annotates")
    };
    let cluster = Arc::new(FakeCluster {
        silent: true,
        ..FakeCluster::default()
    });
    let policies = Policies::load(&runtime(), &[spec], cluster).await.unwrap();
    let attack = async || step(&policies, HookPhase::BeforeDrain, b"look").await;
    let (outcomes, steps) = beside(1, attack).await;
    let [StepOutcome::Failed { message, .. }] = outcomes.as_slice() else {
        panic!("{outcomes:?}")
    };
    assert_eq!(
        message,
        "policy `p` failed in step: it did not answer within 0.7 s; most of that time it waited for the API server or for \
         servers that it called"
    );
    assert!(steps >= 2 * STEPS, "the neighbour took {steps} steps");
}

pub(super) async fn row_03_sleeping_for_a_day() {
    let spec = PolicySpec {
        file: wasi_guest("wasi_rude"),
        wasi: true,
        config: [("mode".to_owned(), "sleep".to_owned())].into(),
        limits: sleepy(),
        ..spec("echo")
    };
    let policies = load_spec(spec).await.unwrap();
    let attack = async || step(&policies, HookPhase::BeforeDrain, b"").await;
    let (outcomes, steps) = beside(2, attack).await;
    for outcome in outcomes {
        assert!(
            matches!(&outcome, StepOutcome::Failed { message, .. } if message.ends_with("within 0.7 s")),
            "{outcome:?}"
        );
    }
    assert!(steps >= 2 * STEPS, "the neighbour took {steps} steps");
    assert!(!CallResult::Ok.is_fault() && CallResult::Wall.is_fault());
}
