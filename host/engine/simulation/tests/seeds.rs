//! A hundred thousand worlds violate no invariant and meet every fault, and a seed always gives the same history. Each
//! day adds worlds of its own.

#[path = "../../../scupper/tests/support/skip.rs"]
mod skip;

use std::io::Write as _;
use std::time::{Duration, SystemTime};

use scupper_engine_simulation::{Stop, run, run_many};

/// The number of worlds in every `cargo test`; the `simulate` binary runs any number.
const WORLDS: u64 = 100_000;
/// The number of additional worlds that only this day has.
const WORLDS_OF_A_DAY: u64 = 25_000;
/// The worlds of days begin far behind those of every day.
const FIRST_OF_DAYS: u64 = 1_000_000_000;
/// Repeats the worlds of that day.
const DAY: &str = "SCUPPER_SIMULATION_DAY";
/// The time budget assumes a machine with two cores.
const THREADS: usize = 2;

#[test]
fn every_promise_holds_in_a_hundred_thousand_worlds_that_meet_every_fault() {
    if skip::left_out("simulation") {
        return;
    }
    let totals = run_many(0..WORLDS, THREADS, Stop::AtFirst);
    if let Some(violation) = totals.violations.first() {
        panic!("{violation}");
    }
    assert_eq!(totals.worlds, WORLDS);
    let missing = totals.coverage.missing();
    assert!(missing.is_empty(), "no world has met: {}", missing.join(", "));
}

#[test]
fn every_promise_holds_in_the_worlds_of_the_day() {
    if skip::left_out("simulation") {
        return;
    }
    let day = match std::env::var(DAY) {
        Ok(day) => day.parse().unwrap_or_else(|error| panic!("{DAY}={day}: {error}")),
        Err(_) => days_since_1970(),
    };
    let first = FIRST_OF_DAYS + day * WORLDS_OF_A_DAY;
    // Not by a macro: those are hidden while a test passes.
    writeln!(
        std::io::stderr(),
        "simulation: day {day}, worlds {first} to {}; repeat them with {DAY}={day}",
        first + WORLDS_OF_A_DAY - 1
    )
    .unwrap();
    let totals = run_many(first..first + WORLDS_OF_A_DAY, THREADS, Stop::AtFirst);
    if let Some(violation) = totals.violations.first() {
        panic!(
            "day {day}: {violation}\na seed means another world once the simulation changes: fix it with a behaviour test or a mutation that shows it"
        );
    }
    assert_eq!(totals.worlds, WORLDS_OF_A_DAY);
}

#[expect(clippy::disallowed_methods, reason = "the day chooses the worlds")]
fn days_since_1970() -> u64 {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / DAY.as_secs())
}

#[test]
fn a_seed_gives_the_same_commands_every_time() {
    for seed in 0..300 {
        let first = run(seed).map(|report| (report.hash, report.took, report.requests));
        let second = run(seed).map(|report| (report.hash, report.took, report.requests));
        assert_eq!(first.ok(), second.ok(), "seed {seed}");
    }
}
