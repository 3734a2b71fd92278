//! Runs worlds: one, one with its history, or many on several threads.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use scupper_engine::{Event, Pod};

use crate::calls::{Process, Step};
use crate::coverage::Coverage;
use crate::crossings;
use crate::violation::{Broken, Violation};
use crate::world::{START, World};

/// A world without a violation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// A fingerprint of every command that the engine gave.
    pub hash: u64,
    /// Its coverage.
    pub coverage: Coverage,
    /// Its length, in its own milliseconds.
    pub took: u64,
    /// Requests of the last drive.
    pub requests: u32,
}

/// The results of many worlds.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The number of worlds.
    pub worlds: u64,
    /// Their total length, in their own milliseconds.
    pub took: u64,
    /// Their coverage.
    pub coverage: Coverage,
    /// The violations found, by seed.
    pub violations: Vec<Violation>,
}

/// Runs the world of this seed.
pub fn run(seed: u64) -> Result<Report, Box<Violation>> {
    run_world(seed, false).0
}

/// Runs the world of this seed and returns its history.
pub fn narrate(seed: u64) -> (Result<Report, Box<Violation>>, Vec<String>) {
    run_world(seed, true)
}

/// A pod as an engine was told of it, for tests that need one and change what matters to them. `None`: no engine was.
pub fn any_pod() -> Option<Pod> {
    let mut steps = processes(0).into_iter().flat_map(|process| process.steps);
    steps.find_map(|step| match step {
        Step::Event(_, Event::Pods(pods)) => pods.into_iter().next(),
        _ => None,
    })
}

/// Runs the world of this seed and returns what each of its processes' engines was told and commanded.
pub fn processes(seed: u64) -> Vec<Process> {
    let mut world = World::new(seed, false);
    world.calls = Some(Vec::new());
    // Whether it breaks an invariant is for others to say.
    if world.run().is_ok() {
        world.calls.unwrap_or_default()
    } else {
        Vec::new()
    }
}

fn run_world(seed: u64, whole: bool) -> (Result<Report, Box<Violation>>, Vec<String>) {
    let first = attempt(seed, whole, whole);
    match first {
        // Once more, for its history.
        (Err(_), _) if !whole => attempt(seed, true, false),
        first => first,
    }
}

fn attempt(seed: u64, traced: bool, whole: bool) -> (Result<Report, Box<Violation>>, Vec<String>) {
    let mut world = World::new(seed, traced);
    if whole {
        world.trace.keep_all();
    }
    let result = catch_unwind(AssertUnwindSafe(|| world.run()));
    let result = match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(broken)) => Err(broken),
        Err(panic) => Err(Broken {
            invariant: 7,
            message: format!("the engine panics: {}", panic_text(panic.as_ref())),
        }),
    };
    crossings::count(&mut world.coverage);
    let story = world.trace.lines();
    let report = match result {
        Ok(()) => Ok(Report {
            hash: world.trace.hash(),
            took: world.now - START,
            requests: world.requests,
            coverage: world.coverage,
        }),
        Err(broken) => Err(Box::new(world.violated(seed, broken))),
    };
    (report, story)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| String::from(*text));
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

/// When to stop before all worlds have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At the first violation.
    AtFirst,
    /// At the first violation of this invariant.
    AtInvariant(u8),
    /// Never.
    Never,
}

/// Runs the worlds of many seeds on this many threads.
pub fn run_many(seeds: Range<u64>, threads: usize, when: Stop) -> Results {
    let next = AtomicU64::new(seeds.start);
    let stop = AtomicBool::new(false);
    let tallies: Vec<Results> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| scope.spawn(|| work(&next, seeds.end, &stop, when)))
            .collect();
        workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .collect()
    });
    let mut sum = Results::default();
    for totals in tallies {
        sum.worlds += totals.worlds;
        sum.took += totals.took;
        sum.coverage.add(&totals.coverage);
        sum.violations.extend(totals.violations);
    }
    sum.violations.sort_by_key(|violation| violation.seed);
    sum
}

fn work(next: &AtomicU64, end: u64, stop: &AtomicBool, when: Stop) -> Results {
    let mut totals = Results::default();
    while !stop.load(Ordering::Relaxed) {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            break;
        }
        totals.worlds += 1;
        match run(seed) {
            Ok(report) => {
                totals.took += report.took;
                totals.coverage.add(&report.coverage);
            }
            Err(violation) => {
                let enough = match when {
                    Stop::AtFirst => true,
                    Stop::AtInvariant(invariant) => violation.invariant == invariant,
                    Stop::Never => false,
                };
                totals.violations.push(*violation);
                stop.fetch_or(enough, Ordering::Relaxed);
            }
        }
    }
    totals
}
