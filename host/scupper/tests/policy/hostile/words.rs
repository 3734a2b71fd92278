//! Rows 9 and 10: guests that log too much, and guests that read too many random numbers.

use std::time::{Duration, Instant};

use scupper_engine::{HookPhase, PlanAnswer, StepOutcome};
use scupper_policy_spec::{Limits, PolicySpec};

use super::beside;
use crate::guests::wasi_guest;
use crate::logs::{Lines, allowed_since};
use crate::support::{load, load_spec, plan, short, spec, step};

pub(super) async fn row_09_a_flood_of_log_lines() {
    let log = Lines::collect();
    let begun = Instant::now();
    let policies = load("floods_log").await;
    let (answers, steps) = beside(1, async || plan(&policies, 1).await).await;
    assert!(matches!(answers.as_slice(), [PlanAnswer::Plan(_)]), "{answers:?}");
    assert!(steps >= 3, "the neighbour took {steps} steps");
    let text = log.of("p");
    let flood: Vec<&String> = text
        .iter()
        .filter(|line| line.contains(r"\n\u{1b}[31mred"))
        .collect();
    let most = allowed_since(begun);
    assert!((50..=most).contains(&flood.len()), "{} lines", flood.len());
    assert!(flood.iter().all(|line| line.len() < 1300), "a line is too long");
    assert!(
        !text.iter().any(|line| line.contains('\u{1b}')),
        "a control character came through"
    );
    assert!(
        text.iter().any(|line| line.contains("lines were dropped")),
        "the dropped lines are not reported"
    );
    let usage = policies.usage()[0].total;
    assert_eq!(usage.log_lines + usage.log_lines_dropped, 100_000);
    assert_eq!(usage.log_lines, flood.len() as u64);
}

fn rude(mode: &str) -> PolicySpec {
    PolicySpec {
        file: wasi_guest("wasi_rude"),
        wasi: true,
        config: [("mode".to_owned(), mode.to_owned())].into(),
        limits: Limits {
            step_cpu: Duration::from_secs(1),
            ..short()
        },
        ..spec("echo")
    }
}

pub(super) async fn row_10_more_random_bytes_than_there_is_memory() {
    let policies = load_spec(rude("random")).await.unwrap();
    let attack = async || step(&policies, HookPhase::BeforeDrain, b"").await;
    let (outcomes, _) = beside(5, attack).await;
    for outcome in outcomes {
        assert!(
            matches!(&outcome, StepOutcome::Failed { message, .. } if message.contains("exceeds limit 4096")),
            "{outcome:?}"
        );
    }
}

pub(super) async fn row_10_dice_fall_the_same_way_for_the_same_drain() {
    let policies = load_spec(rude("dice")).await.unwrap();
    let (answers, _) = beside(4, async || plan(&policies, 1).await).await;
    assert!(matches!(answers[0], PlanAnswer::Refused { .. }), "{answers:?}");
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}
