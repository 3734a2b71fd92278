//! The grant `wasi`: a plain standard library works as far as it is harmless, and no further; without the grant none of
//! it exists.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use scupper_engine::{HookPhase, PlanAnswer, StepOutcome};
use scupper_policy::{CallResult, LoadFault, Policies, SourceError};
use scupper_policy_spec::{Limits, PolicySpec};

use crate::guests::wasi_guest;
use crate::logs::{Lines, allowed_since};
use crate::support::{chain, failed_plan, fault, guest, guests, load_spec, plan, refused, short, step};

/// A guest with the grant, under a name of its own in the log.
fn granted(guest: &str, mode: &str) -> PolicySpec {
    PolicySpec {
        name: "p".to_owned(),
        file: wasi_guest(guest),
        wasi: true,
        config: BTreeMap::from([("mode".to_owned(), mode.to_owned())]),
        limits: short(),
        ..PolicySpec::default()
    }
}

async fn load(spec: PolicySpec) -> Policies {
    load_spec(spec)
        .await
        .unwrap_or_else(|error| panic!("{}", chain(&error)))
}

async fn failed_step(policies: &Policies) -> String {
    match step(policies, HookPhase::BeforeDrain, b"").await {
        StepOutcome::Failed { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

async fn refusal(policies: &Policies) -> String {
    match plan(policies, 2).await {
        PlanAnswer::Refused { message } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_plain_standard_library_works_and_finds_nothing() {
    let policies = load(granted("wasi_polite", "")).await;
    let seen = failed_step(&policies).await;
    for part in [
        "waited: true",
        // The time of the call, and no other.
        "1700000200000 ms",
        "0 variables",
        "0 arguments",
    ] {
        assert!(seen.contains(part), "{part} is missing in {seen}");
    }
    assert_eq!(
        seen.matches("Err(").count(),
        2,
        "a file or a directory was found: {seen}"
    );
}

#[tokio::test]
async fn printed_output_is_logged_line_by_line() {
    let log = Lines::collect();
    let name = "wasi-prints";
    let spec = PolicySpec {
        name: name.to_owned(),
        ..granted("wasi_polite", "")
    };
    let policies = load(spec).await;
    step_of(&policies, name).await;
    let lines = log.of(name);
    let found = |level: &str, end: &str| {
        lines
            .iter()
            .any(|line| line.contains(level) && line.contains(end))
    };
    assert!(found(" INFO ", r"steps\r"), "{lines:#?}");
    assert!(found(" INFO ", r"and \u{1b}[31mwaits"), "{lines:#?}");
    assert!(found(" WARN ", "complains"), "{lines:#?}");
    // Without a newline, and still before the call ends.
    assert!(found(" WARN ", "no end"), "{lines:#?}");
}

/// Takes a step of a policy with another name than `p`.
async fn step_of(policies: &Policies, name: &str) -> StepOutcome {
    let node = crate::support::node();
    let step = scupper_engine::HookStep {
        policy: name.to_owned(),
        phase: HookPhase::BeforeDrain,
        subject: scupper_engine::Subject::Node,
        state: Vec::new(),
        leaving: Vec::new(),
    };
    policies
        .step(scupper_policy::StepCall {
            step: &step,
            drain: crate::support::drain(),
            node: &node,
            pods: &[],
        })
        .await
}

#[tokio::test]
async fn a_planner_sees_the_same_twice() {
    for (guest, mode) in [("wasi_polite", ""), ("wasi_rude", "dice")] {
        let first = refusal(&load(granted(guest, mode)).await).await;
        let policies = load(granted(guest, mode)).await;
        assert_eq!(refusal(&policies).await, first);
        assert_eq!(refusal(&policies).await, first);
        assert_ne!(failed_step(&policies).await, first);
    }
}

#[tokio::test]
async fn without_the_grant_the_error_names_imports_and_the_line_to_add() {
    let spec = PolicySpec {
        wasi: false,
        ..granted("wasi_polite", "")
    };
    let Err(error) = load_spec(spec).await else {
        panic!("it was loaded")
    };
    let (fault, text) = fault(error);
    assert!(
        matches!(fault, LoadFault::Source(SourceError::Wasi { .. })),
        "{text}"
    );
    for part in ["wasi:cli/", "@0.2.", "wasm32-unknown-unknown", "`wasi: true`"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[tokio::test]
async fn wants_sockets() {
    let (fault, text) = refused("wants_sockets").await;
    assert!(
        matches!(fault, LoadFault::Source(SourceError::System { .. })),
        "{text}"
    );
    assert!(text.contains("wasi:sockets/ip-name-lookup@0.2.6"), "{text}");
    let spec = PolicySpec {
        wasi: true,
        file: guest("wants_sockets"),
        ..granted("wasi_polite", "")
    };
    assert!(load_spec(spec).await.is_err(), "the grant must not bring sockets");
}

/// The default tier has no system imports: our guests have none, and the host would provide none.
#[test]
fn no_policy_of_the_default_tier_imports_a_system_interface() {
    let system: Vec<String> = guests()
        .into_iter()
        .filter(|name| !name.starts_with("wants_"))
        .filter(|name| {
            let bytes = std::fs::read(guest(name)).unwrap();
            bytes.windows(5).any(|window| window == b"wasi:")
        })
        .collect();
    assert_eq!(system, [] as [String; 0]);
}

#[tokio::test]
async fn a_sleeper_is_ended_by_the_wall_and_a_planner_cannot_sleep() {
    let policies = load(PolicySpec {
        limits: Limits {
            step_wall: Duration::from_millis(300),
            ..short()
        },
        ..granted("wasi_rude", "sleep")
    })
    .await;
    let message = failed_step(&policies).await;
    assert_eq!(
        message,
        "policy `p` failed in step: it did not answer within 0.3 s"
    );
    let message = failed_plan(&policies).await;
    assert!(message.contains("only `step` may"), "{message}");
}

#[tokio::test]
async fn exit_and_abort_are_errors_with_names() {
    let message = failed_step(&load(granted("wasi_rude", "exit")).await).await;
    assert!(message.contains("it called exit with code"), "{message}");
    let message = failed_step(&load(granted("wasi_rude", "abort")).await).await;
    assert!(
        message.contains("unreachable") && message.contains("act"),
        "{message}"
    );
}

#[tokio::test]
async fn too_many_random_bytes_are_refused() {
    let message = failed_step(&load(granted("wasi_rude", "random")).await).await;
    assert!(message.contains("exceeds limit 4096"), "{message}");
}

#[tokio::test]
async fn handles_end_where_the_limit_is() {
    let policies = load(granted("wasi_rude", "handles")).await;
    let message = failed_step(&policies).await;
    assert!(
        message.ends_with("it exceeded its limit of 1000 handles"),
        "{message}"
    );
    assert_eq!(CallResult::Handles.as_str(), "handles");
}

#[tokio::test]
async fn a_flood_of_output_is_bounded() {
    let log = Lines::collect();
    for mode in ["flood", "endless"] {
        let name = format!("wasi-{mode}");
        let begun = Instant::now();
        let policies = load(PolicySpec {
            name: name.clone(),
            limits: Limits {
                step_cpu: Duration::from_secs(2),
                ..short()
            },
            ..granted("wasi_rude", mode)
        })
        .await;
        step_of(&policies, &name).await;
        let lines = log.of(&name);
        let flood: Vec<&String> = lines.iter().filter(|line| line.contains("xxxx")).collect();
        let most = allowed_since(begun);
        assert!((1..=most).contains(&flood.len()), "{mode}: {} lines", flood.len());
        assert!(flood.iter().all(|line| line.len() < 1300), "a line is too long");
        assert!(
            lines.iter().any(|line| line.contains("lines were dropped")),
            "the dropped lines are not reported"
        );
        assert!(policies.usage()[0].total.log_lines_dropped > 100);
    }
}
