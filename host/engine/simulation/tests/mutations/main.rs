//! Breaks the engine on purpose, at least once for each invariant; the simulation must find it.
//!
//! The sources are copied, all rows of the table are applied to the copy at once, each behind a switch, and it is built
//! once. With a row switched on, the copy's `simulate` must find a violation of the row's invariant; with none, it must
//! find nothing. A row whose text is not found exactly once is an error: fix the row, not the engine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test"
)]

mod breaking;
mod copy;
#[path = "../../../../scupper/tests/support/skip.rs"]
mod skip;
mod table;

use std::sync::Mutex;
use std::thread;

use crate::copy::{Copy, output_end};
use crate::table::{MUTATIONS, Mutation};

/// The violation must be found within this many worlds.
const WORLDS: &str = "20000";
/// The number of rows that run in parallel.
const WORKERS: usize = 2;

#[test]
fn every_mutation_is_found_and_the_engine_as_it_is_passes() {
    if skip::left_out("simulation") {
        return;
    }
    let copy = Copy::new(MUTATIONS).unwrap_or_else(|problem| panic!("{problem}"));
    let next = Mutex::new(0..=MUTATIONS.len());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(turn) = next.lock().unwrap().next() else {
                        return;
                    };
                    // The first run is the engine without a mutation.
                    let found = match turn.checked_sub(1).and_then(|place| MUTATIONS.get(place)) {
                        None => is_sound(&copy),
                        Some(row) => is_found(&copy, turn, row),
                    };
                    if let Err(failure) = found {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn every_invariant_has_a_mutation() {
    for invariant in 1..=8 {
        assert!(
            MUTATIONS.iter().any(|mutation| mutation.invariant == invariant),
            "none breaks {invariant}"
        );
    }
}

fn is_sound(copy: &Copy) -> Result<(), String> {
    let output = copy.simulate(None, &["--seeds", "3000"]);
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "the engine with no row switched on: {}",
            output_end(&output)
        ))
    }
}

fn is_found(copy: &Copy, number: usize, row: &Mutation) -> Result<(), String> {
    let invariant = row.invariant;
    let output = copy.simulate(
        Some(number),
        &["--seeds", WORLDS, "--until", &invariant.to_string()],
    );
    let words = String::from_utf8_lossy(&output.stdout);
    if words.contains(&format!(" invariant {invariant}: ")) {
        Ok(())
    } else {
        let name = breaking::name(number, row);
        Err(format!(
            "{name} was not found in {WORLDS} worlds: {}",
            output_end(&output)
        ))
    }
}
