//! Many drains in one driver process on an API server in memory, with faults: each ends with a named outcome, and the
//! process does not grow. `make soak` runs it; no other test does.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of a test; a failure is a failed test, and its figures are for people"
)]

mod bench;
#[path = "../support/clock_steps.rs"]
mod clock_library;
mod figures;
mod mishap;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::bench::Bench;
use crate::figures::Figures;
use crate::mishap::{KINDS, Mishap, Rng};

/// The number of drains; without it there is no soak.
const DRAINS: &str = "SCUPPER_SOAK";
/// Repeats a soak.
const SEED: &str = "SCUPPER_SOAK_SEED";
/// The folder of the policies, as `make plugins` builds them.
const POLICIES: &str = "SCUPPER_POLICIES";

/// Fewer drains might not meet every kind of fault.
const ENOUGH: usize = 1000;

#[tokio::test(flavor = "multi_thread")]
async fn no_drain_is_without_an_end_and_the_driver_does_not_grow() {
    let Some(drains) = std::env::var(DRAINS)
        .ok()
        .map(|drains| drains.parse::<usize>().unwrap())
    else {
        println!("left out: {DRAINS} does not say how many drains; see `make soak`");
        return;
    };
    let policies = PathBuf::from(std::env::var(POLICIES).unwrap());
    let seed = match std::env::var(SEED) {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs(),
    };
    println!("soak: seed {seed}");
    let mut rng = Rng(seed);
    let mut figures = Figures::new(seed, drains);
    let mut bench = Bench::start(&policies).await;
    bench.api.seed(seed);
    for number in 0..drains {
        let mishap = Mishap::draw(&mut rng);
        figures.fault(mishap.name());
        let event = format!("drain-{number}");
        bench.pods(1 + u32::try_from(rng.below(3)).unwrap());
        mishap.prepare(&bench, &mut rng);
        let timeout = if mishap == Mishap::TooLate { 500 } else { 30_000 };
        bench.ask(&event, Duration::from_millis(timeout));
        bench.begun(&event).await;
        mishap.happen(&bench, &event, &mut rng).await;
        let end = bench.end_of(&event).await;
        bench.clean_up(rng.below(3) > 0);
        figures.ended(end, bench.pid());
    }
    println!("{figures}");
    figures.check();
    assert!(
        drains < ENOUGH || figures.kinds() > KINDS.len(),
        "not every kind of fault has happened"
    );
}
