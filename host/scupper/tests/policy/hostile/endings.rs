//! Row 16: guests that end themselves, and a driver with a bug. Row 17: the first limit that a storm of bad candidates
//! meets.

use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{HookPhase, PlanAnswer, StepOutcome};
use scupper_policy::{LoadFault, Policies};
use scupper_policy_spec::{FailurePolicy, OnFailure, PolicySpec};

use super::memory::Tide;
use super::{beside, beside_steps};
use crate::guests::wasi_guest;
use crate::support::{
    FakeCluster, chain, draft, failed_plan, grant, load, load_spec, plan, plan_for, pod, runtime, scratch,
    spec, step,
};

pub(super) async fn row_16_a_panic_names_the_function() {
    let policies = load("panics").await;
    let messages = beside_steps(5, 2, async || failed_plan(&policies).await).await;
    for message in messages {
        assert!(
            message.starts_with("policy `p` failed in make-plan: "),
            "{message}"
        );
        assert!(
            message.contains("unreachable") && message.contains("look_up_the_impossible"),
            "{message}"
        );
    }
    let outcome = step(&policies, HookPhase::BeforeDrain, b"").await;
    let StepOutcome::Failed { message, retry_after } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        message.contains("in panics::look_up_the_impossible")
            && !message.contains("_cabi")
            && !message.contains("scupper:drain/"),
        "{message}"
    );
    assert_eq!(retry_after, Some(Duration::from_secs(10)));
}

pub(super) async fn row_16_a_failure_becomes_what_the_operator_wants() {
    for failure_policy in [FailurePolicy::Refuse, FailurePolicy::Ignore, FailurePolicy::Hold] {
        let policies = load_spec(PolicySpec {
            on_failure: OnFailure::new(Some(failure_policy), Some(failure_policy)),
            ..spec("panics")
        });
        let policies = policies.await.unwrap();
        let _measured = Tide::watch();
        let planned = plan_for(&policies, &[pod(1)]).await;
        let stepped = step(&policies, HookPhase::BeforeDrain, b"").await;
        let again = Some(Duration::from_secs(10));
        match failure_policy {
            FailurePolicy::Ignore => {
                assert_eq!(planned, PlanAnswer::Plan(draft(&[pod(1)])));
                assert_eq!(stepped, StepOutcome::Done);
            }
            FailurePolicy::Refuse | FailurePolicy::Hold => {
                let wanted = again.filter(|_| failure_policy == FailurePolicy::Hold);
                assert!(
                    matches!(planned, PlanAnswer::Failed { retry_after, .. } if retry_after == wanted),
                    "{planned:?}"
                );
                assert!(
                    matches!(stepped, StepOutcome::Failed { retry_after, .. } if retry_after == wanted),
                    "{stepped:?}"
                );
            }
        }
    }
    // A refusal is not a failure.
    for planner in [FailurePolicy::Ignore, FailurePolicy::Hold] {
        let on_failure = OnFailure::new(Some(planner), None);
        let refuses = load_spec(PolicySpec {
            on_failure,
            ..spec("refuse")
        });
        let answer = plan(&refuses.await.unwrap(), 1).await;
        assert!(matches!(answer, PlanAnswer::Refused { .. }), "{answer:?}");
    }
}

pub(super) async fn row_16_exit_and_abort() {
    for (mode, words) in [("exit", "it called exit"), ("abort", "unreachable")] {
        let spec = PolicySpec {
            file: wasi_guest("wasi_rude"),
            wasi: true,
            config: [("mode".to_owned(), mode.to_owned())].into(),
            ..spec("echo")
        };
        let policies = load_spec(spec).await.unwrap();
        let attack = async || step(&policies, HookPhase::BeforeDrain, b"").await;
        let (outcomes, _) = beside(3, attack).await;
        for outcome in outcomes {
            assert!(
                matches!(&outcome, StepOutcome::Failed { message, .. } if message.contains(words)),
                "{outcome:?}"
            );
        }
    }
}

pub(super) async fn row_16_a_panic_of_the_driver_itself_becomes_an_answer() {
    let mut spec = spec("annotates");
    spec.grants = vec![
        grant("node-annotations:drain.example.com/"),
        grant("pod-annotations:drain.example.com/"),
    ];
    let cluster = Arc::new(FakeCluster {
        panics: true,
        ..FakeCluster::default()
    });
    let policies = Policies::load(&runtime(), &[spec], cluster).await.unwrap();
    let _measured = Tide::watch();
    for _ in 0..2 {
        let outcome = step(&policies, HookPhase::BeforeDrain, b"look").await;
        let StepOutcome::Failed { message, .. } = outcome else {
            panic!("{outcome:?}")
        };
        assert!(message.ends_with("this is a bug in the driver"), "{message}");
    }
}

/// The tests of reloading cover how often a candidate is tried at all, and when it is tried again.
pub(super) async fn row_17_a_storm_of_broken_candidates_compiles_nothing() {
    let whole = std::fs::read(crate::support::guest("echo")).unwrap();
    let file = scratch().join("storm.wasm");
    // One, as in the driver.
    let runtime = runtime();
    let push = async || {
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let spec = PolicySpec {
            file: file.clone(),
            ..spec("echo")
        };
        let cluster = Arc::new(FakeCluster::default());
        Policies::load(&runtime, &[spec], cluster).await.map(|_| ())
    };
    let pushes = beside_steps(200, 100, push).await;
    for push in pushes {
        let Err(error) = push else { panic!("it was loaded") };
        assert!(matches!(*error.fault, LoadFault::Source(_)), "{}", chain(&error));
    }
}
