//! Somebody well-behaved who lives on the same thread.

use std::cell::Cell;

use scupper_engine::{HookPhase, StepOutcome};

use crate::support::{load, step};

/// More than the rest of this process grows by while its other tests run.
const NOISE_KIB: u64 = 250 * 1024;

/// Does something hostile so many times, while another policy takes one step after the other on the same thread, as
/// another drain would. Gives what came of it and how many steps the other one took.
///
/// Steps are counted instead of their time, which on a busy machine says more about the machine. And the driver must
/// not have grown: whoever eats memory is called often enough to make that seen.
pub(super) async fn beside<T>(times: usize, hostile: impl AsyncFn() -> T) -> (Vec<T>, usize) {
    let neighbour = load("steps").await;
    let steps = Cell::new(0);
    let lives = async {
        loop {
            let outcome = step(&neighbour, HookPhase::BeforeDrain, b"waiting").await;
            assert_eq!(outcome, StepOutcome::Done, "the neighbour was disturbed");
            steps.set(steps.get() + 1);
            tokio::task::yield_now().await;
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
    let before = resident_kib();
    let answers = tokio::select! {
        answers = attacks => answers,
        () = lives => Vec::new(),
    };
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < NOISE_KIB, "the driver has grown by {grown} KiB");
    (answers, steps.get())
}

/// This process's resident memory.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
