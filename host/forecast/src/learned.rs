//! The times that recorded drains took, by workload, budget and hook, and times drawn from them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use fastrand::Rng;
use scupper_engine::{Budget, HookPhase, Intent, Pod};
use scupper_recording::{Header, ObservedTimes, ReadError, Recording};

use crate::Situation;
use crate::basis::leaving;

/// How long a replacement takes to be ready where nothing is known of it.
pub const READY_WITHIN: RangeInclusive<Duration> = Duration::from_secs(5)..=Duration::from_secs(120);
/// The shortest time in which a pod ends of which nothing is known.
const ENDS: Duration = Duration::from_secs(1);
/// Of one thing so many times are kept, the newest.
const KEPT: usize = 200;
/// A shorter time counts as this: of nothing there is no logarithm.
const LEAST: Duration = Duration::from_millis(1);
/// Fewer times than these say little about how much times differ.
pub(crate) const MANY: usize = 5;
/// How much fewer times differ at least, as the standard deviation of their logarithms: two of three are within a third.
const FEW_DIFFER: f64 = 0.3;
/// The width of the kernel by Silverman's rule of thumb, for one standard deviation and one time.
const BLUR: f64 = 1.06;

/// Pods with one controller. Of a ReplicaSet's name the part that is new with each rollout is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    /// The namespace.
    pub namespace: String,
    /// The controller's kind, or `Pod`.
    pub kind: String,
    /// The controller's name, or the pod's.
    pub name: String,
}

impl Workload {
    /// The one of a pod.
    pub fn of(pod: &Pod) -> Self {
        let namespace = pod.id.namespace.clone();
        let (kind, name) = match &pod.controller {
            Some(owner) => (owner.kind.as_str(), owner.name.as_str()),
            None => ("Pod", pod.id.name.as_str()),
        };
        let name = match (name.rsplit_once('-'), pod.labels.get("pod-template-hash")) {
            (Some((deployment, hash)), Some(label)) if kind == "ReplicaSet" && hash == label => deployment,
            _ => name,
        };
        Self {
            namespace,
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// What is known from recorded drains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// How many drains.
    pub(crate) recordings: usize,
    endings: BTreeMap<Workload, Vec<Duration>>,
    replacements: BTreeMap<(String, String), Vec<Duration>>,
    hooks: BTreeMap<(String, HookPhase), Vec<Duration>>,
    /// What drains took besides.
    overheads: Vec<Duration>,
    /// Of these some took longer than this, at least.
    cut_endings: BTreeMap<Workload, Duration>,
    cut_hooks: BTreeMap<(String, HookPhase), Duration>,
}

impl Learned {
    /// Reads recorded drains, and what is wrong with those that cannot be read.
    pub fn read(
        files: impl IntoIterator<Item = PathBuf>,
        is_wanted: impl Fn(&Header) -> bool,
    ) -> (Self, Vec<ReadError>) {
        let (mut drains, mut unreadable) = (Vec::new(), Vec::new());
        for file in files {
            match Recording::header(&file) {
                Ok(header) if header.request.intent != Intent::Drain || !is_wanted(&header) => {}
                Ok(header) => drains.push((header.wall, file)),
                Err(error) => unreadable.push(error),
            }
        }
        drains.sort();
        let mut learned = Self::default();
        for (_, file) in drains {
            match ObservedTimes::read(&file) {
                Ok(times) => learned.add(&times),
                Err(error) => unreadable.push(error),
            }
        }
        (learned, unreadable)
    }

    /// Adds those of one more drain, newer than the others.
    pub fn add(&mut self, times: &ObservedTimes) {
        self.recordings += 1;
        for (pod, took) in &times.endings {
            push(self.endings.entry(Workload::of(pod)).or_default(), *took);
        }
        for (pod, took) in &times.cut_endings {
            let longest = self.cut_endings.entry(Workload::of(pod)).or_default();
            *longest = (*longest).max(*took);
        }
        for (budget, took) in &times.replacements {
            push(self.replacements.entry(budget.clone()).or_default(), *took);
        }
        for (policy, phase, took) in &times.hooks {
            push(self.hooks.entry((policy.clone(), *phase)).or_default(), *took);
        }
        times
            .overhead
            .iter()
            .for_each(|took| push(&mut self.overheads, *took));
        for (policy, phase, took) in &times.cut_hooks {
            let longest = self.cut_hooks.entry((policy.clone(), *phase)).or_default();
            *longest = (*longest).max(*took);
        }
    }

    /// Whether pods of its workload have been seen to end.
    pub(crate) fn knows(&self, pod: &Pod) -> bool {
        self.seen(&Workload::of(pod)) > 0
    }

    /// Whether pods of the workload of a pod that is to leave have been seen to end.
    pub fn knows_any_of(&self, situation: &Situation) -> bool {
        leaving(situation).any(|pod| self.knows(pod))
    }

    /// How often pods of a workload have been seen to end.
    pub(crate) fn seen(&self, workload: &Workload) -> usize {
        self.endings.get(workload).map_or(0, Vec::len)
    }

    pub(crate) fn has_cut(&self, workload: &Workload) -> bool {
        self.cut_endings.contains_key(workload)
    }

    pub(crate) fn has_cut_hook(&self, hook: &(String, HookPhase)) -> bool {
        self.cut_hooks.contains_key(hook)
    }

    /// How long a pod takes to end.
    pub(crate) fn ending(&self, pod: &Pod) -> Times {
        let grace = Duration::from_secs(pod.grace_seconds);
        let workload = Workload::of(pod);
        let longer = self.cut_endings.get(&workload).copied();
        match self.endings.get(&workload) {
            Some(seen) => Times::seen(&and_longer(seen, longer)),
            None => Times::Between(longer.unwrap_or_default().max(ENDS).min(grace), grace),
        }
    }

    /// How long a budget lacks a pod that was asked to leave, if that is known.
    pub(crate) fn replacement(&self, budget: &Budget) -> Option<Times> {
        let name = (budget.namespace.clone(), budget.name.clone());
        self.replacements.get(&name).map(|seen| Times::seen(seen))
    }

    /// What a drain takes besides, if that is known: requests of its own.
    pub(crate) fn overhead(&self) -> Option<Times> {
        (!self.overheads.is_empty()).then(|| Times::seen(&self.overheads))
    }

    /// How long a hook takes.
    pub(crate) fn hook(&self, policy: &str, phase: HookPhase) -> Option<Times> {
        let hook = (policy.to_owned(), phase);
        let longer = self.cut_hooks.get(&hook).copied();
        let seen = self.hooks.get(&hook).map_or(&[][..], Vec::as_slice);
        let times = and_longer(seen, longer);
        (!times.is_empty()).then(|| Times::seen(&times))
    }
}

/// All that were seen, and the one that was longer if it was longer than these.
fn and_longer(seen: &[Duration], longer: Option<Duration>) -> Vec<Duration> {
    let longest = seen.iter().max().copied().unwrap_or_default();
    let longer = longer.filter(|longer| *longer > longest);
    seen.iter().copied().chain(longer).collect()
}

fn push(times: &mut Vec<Duration>, took: Duration) {
    if times.len() == KEPT {
        times.remove(0);
    }
    times.push(took);
}

/// Times of which one can be drawn.
#[derive(Clone, Debug)]
pub(crate) enum Times {
    /// They took this long; how much they differ, as the standard deviation of their logarithms.
    Seen(Vec<Duration>, f64),
    /// Nothing is known but these bounds: each factor is as likely as every other, and one holds for a whole play.
    Between(Duration, Duration),
}

impl Times {
    /// What was seen; not empty.
    fn seen(times: &[Duration]) -> Self {
        let logs: Vec<f64> = times
            .iter()
            .map(|took| took.max(&LEAST).as_secs_f64().ln())
            .collect();
        let number = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / number;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        // One time says nothing about how much they differ.
        let spread = (squares / (number - 1.0).max(1.0)).sqrt();
        let least = if times.len() < MANY { FEW_DIFFER } else { 0.0 };
        Self::Seen(times.to_vec(), spread.max(least))
    }

    /// What all times of a play have in common. Of those that were seen: the factor by which they may differ from what was
    /// seen, because only a few were. Otherwise: where between the bounds they are, from 0 to 1.
    pub(crate) fn shift(&self, random: &mut Rng) -> f64 {
        match self {
            Self::Seen(times, spread) => (normal(random) * spread / (times.len() as f64).sqrt()).exp(),
            Self::Between(..) => random.f64(),
        }
    }

    /// A time; one that was seen is blurred, so that it may also be longer than all of them.
    pub(crate) fn draw(&self, shift: f64, random: &mut Rng) -> Duration {
        match self {
            Self::Seen(times, spread) => {
                let seen = random.choice(times).copied().unwrap_or_default();
                let width = spread * BLUR * (times.len() as f64).powf(-0.2);
                times_factor(seen, shift * (normal(random) * width).exp())
            }
            Self::Between(low, high) if low < high && !low.is_zero() => {
                times_factor(*low, (high.as_secs_f64() / low.as_secs_f64()).powf(shift))
            }
            Self::Between(low, _) => *low,
        }
    }
}

fn times_factor(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(time)
}

/// A normally distributed number (Box and Muller).
fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}
