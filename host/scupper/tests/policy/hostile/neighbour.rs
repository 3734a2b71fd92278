//! A well-behaved policy on the same thread.

use std::cell::Cell;
use std::time::Duration;

use scupper_engine::{HookPhase, StepOutcome};

use super::memory::Tide;
use crate::support::{load, step};

/// More steps than any test counts: from then on it leaves the CPU to the other tasks.
const ENOUGH: usize = 200;

/// Runs a hostile action this many times, while another policy takes one step after the other on the same thread, as
/// another drain would. Returns the results and the number of steps of the other policy.
///
/// It counts steps instead of time, which on a busy machine says more about the machine.
pub(super) async fn beside<T>(times: usize, hostile: impl AsyncFn() -> T) -> (Vec<T>, usize) {
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
        let mut answers = Vec::new();
        for _ in 0..times {
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
