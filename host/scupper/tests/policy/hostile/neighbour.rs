//! A well-behaved policy on the same thread.

use std::cell::Cell;
use std::time::{Duration, Instant};

use scupper_engine::{HookPhase, StepOutcome};

use super::memory::Tide;
use crate::support::{load, step};

/// More steps than any test counts: from then on it leaves the CPU to the other tasks.
const ENOUGH: usize = 200;

/// When the other policy has taken its steps beside short attacks, even on a busy machine.
const WITHIN: Duration = Duration::from_secs(120);

/// Runs a hostile action this many times, while another policy takes one step after the other on the same thread, as
/// another drain would. Returns the results and the number of steps of the other policy.
///
/// It counts steps instead of time, which on a busy machine says more about the machine.
pub(super) async fn beside<T>(times: usize, hostile: impl AsyncFn() -> T) -> (Vec<T>, usize) {
    run_beside(times, 0, hostile).await
}

/// The same for attacks that take less time than a step of the other policy may: they go on until it has taken as many
/// steps.
pub(super) async fn beside_steps<T>(times: usize, least: usize, hostile: impl AsyncFn() -> T) -> Vec<T> {
    let (answers, steps) = run_beside(times, least, hostile).await;
    assert!(
        steps >= least,
        "the neighbour took {steps} steps beside {} attacks",
        answers.len()
    );
    answers
}

async fn run_beside<T>(times: usize, least: usize, hostile: impl AsyncFn() -> T) -> (Vec<T>, usize) {
    let neighbour = load("steps").await;
    let steps = Cell::new(0);
    let lives = async {
        loop {
            let outcome = step(&neighbour, HookPhase::BeforeDrain, b"waiting").await;
            assert_eq!(outcome, StepOutcome::Done, "the neighbour was disturbed");
            steps.set(steps.get() + 1);
            if steps.get() < ENOUGH {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    let attacks = async {
        let begun = Instant::now();
        let mut answers = Vec::new();
        while answers.len() < times || steps.get() < least && begun.elapsed() < WITHIN {
            answers.push(hostile().await);
            tokio::task::yield_now().await;
        }
        answers
    };
    let _measured = Tide::watch();
    let answers = tokio::select! {
        answers = attacks => answers,
        () = lives => Vec::new(),
    };
    (answers, steps.get())
}
