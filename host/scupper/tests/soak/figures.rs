//! The measurements of a soak.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::Instant;

/// The allowed growth of the process, in percent, from its warm state until its end.
const GROWTH: f64 = 5.0;
/// The share of the drains that warm the process up: each kind of fault has happened by then.
const WARM: f64 = 0.1;

/// Counts and samples.
#[derive(Debug)]
pub(crate) struct Figures {
    seed: u64,
    drains: usize,
    begun: Instant,
    ends: BTreeMap<String, usize>,
    faults: BTreeMap<&'static str, usize>,
    /// After each drain, in KiB.
    memory: Vec<u64>,
}

impl Figures {
    pub(crate) fn new(seed: u64, drains: usize) -> Self {
        Self {
            seed,
            drains,
            begun: Instant::now(),
            ends: BTreeMap::new(),
            faults: BTreeMap::new(),
            memory: Vec::new(),
        }
    }

    pub(crate) fn fault(&mut self, name: &'static str) {
        *self.faults.entry(name).or_default() += 1;
    }

    /// A drain has ended; its outcome, and its process.
    pub(crate) fn ended(&mut self, end: String, pid: u32) {
        *self.ends.entry(end).or_default() += 1;
        self.memory.push(resident(pid));
        let done = self.memory.len();
        if done.is_multiple_of(100) {
            println!(
                "{done} drains, {:.0} s, {} KiB",
                self.begun.elapsed().as_secs_f64(),
                resident(pid)
            );
        }
    }

    /// The kinds of faults that happened.
    pub(crate) fn kinds(&self) -> usize {
        self.faults.len()
    }

    /// The growth of the process since it was warm, in percent. Means of a twentieth of the drains each: one sample
    /// contains whatever a drain holds at that moment.
    fn growth(&self) -> (f64, f64, f64) {
        let window = (self.drains / 20).max(1);
        let warm = (self.drains as f64 * WARM) as usize;
        let mean = |samples: &[u64]| samples.iter().sum::<u64>() as f64 / samples.len().max(1) as f64;
        let first = mean(&self.memory[warm..warm + window]);
        let last = mean(&self.memory[self.memory.len() - window..]);
        (first, last, (last - first) / first * 100.0)
    }

    pub(crate) fn check(&self) {
        let (first, last, growth) = self.growth();
        assert!(
            growth < GROWTH,
            "the driver has grown by {growth:.1} % from {first:.0} to {last:.0} KiB"
        );
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last, growth) = self.growth();
        let most = self.memory.iter().max().unwrap_or(&0);
        writeln!(
            f,
            "soak: {} drains in one driver process, {:.0} s; repeat them with SCUPPER_SOAK_SEED={}",
            self.drains,
            self.begun.elapsed().as_secs_f64(),
            self.seed
        )?;
        writeln!(f, "ends:   {:?}", self.ends)?;
        writeln!(f, "faults: {:?}", self.faults)?;
        write!(
            f,
            "memory: {first:.0} KiB when warm, {last:.0} KiB at the end ({growth:+.1} %), {most} KiB at most"
        )
    }
}

/// The process's memory, in KiB.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
