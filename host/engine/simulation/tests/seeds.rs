//! A hundred thousand worlds keep every promise, every fault was met in them, and a seed always tells the same story.

#[path = "../../../tests/support/skip.rs"]
mod skip;

use scupper_engine_simulation::{Stop, run, run_many};

/// So many worlds are run by every `cargo test`; the `simulate` binary runs any number.
const WORLDS: u64 = 100_000;
/// The machine that the time budget is reckoned for has two cores.
const THREADS: usize = 2;

#[test]
fn every_promise_holds_in_a_hundred_thousand_worlds_that_meet_every_fault() {
    if skip::left_out("simulation") {
        return;
    }
    let tally = run_many(0..WORLDS, THREADS, Stop::AtFirst);
    if let Some(violation) = tally.violations.first() {
        panic!("{violation}");
    }
    assert_eq!(tally.worlds, WORLDS);
    let missing = tally.coverage.missing();
    assert!(missing.is_empty(), "no world has met: {}", missing.join(", "));
}

#[test]
fn seeds_that_once_broke_a_promise_keep_it() {
    let list = include_str!("../regressions.txt");
    let seeds: Vec<u64> = list
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
        .collect();
    assert!(!seeds.is_empty(), "regressions.txt names no seed");
    for seed in seeds {
        if let Err(violation) = run(seed) {
            panic!("{violation}");
        }
    }
}

#[test]
fn a_seed_gives_the_same_commands_every_time() {
    for seed in 0..300 {
        let first = run(seed).map(|report| (report.hash, report.took, report.requests));
        let second = run(seed).map(|report| (report.hash, report.took, report.requests));
        assert_eq!(first.ok(), second.ok(), "seed {seed}");
    }
}
