//! The times that recorded drains took, by workload, budget and hook, and times drawn from them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;
use scupper_engine::{HookPhase, Pod};
use scupper_recording::ObservedTimes;

/// How long a replacement takes to be ready where nothing is known of it.
pub const READY_WITHIN: RangeInclusive<Duration> = Duration::from_secs(5)..=Duration::from_secs(120);
/// The shortest time in which a pod ends of which nothing is known.
const ENDS: Duration = Duration::from_secs(1);
/// Of one thing so many times are kept, the newest.
const KEPT: usize = 200;

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
        let name = match name.rsplit_once('-') {
            Some((deployment, _)) if kind == "ReplicaSet" => deployment,
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
}

impl Learned {
    /// Adds those of one more drain, newer than the others.
    pub fn add(&mut self, times: &ObservedTimes) {
        self.recordings += 1;
        for (pod, took) in &times.endings {
            push(self.endings.entry(Workload::of(pod)).or_default(), *took);
        }
        for (budget, took) in &times.replacements {
            push(self.replacements.entry(budget.clone()).or_default(), *took);
        }
        for (policy, phase, took) in &times.hooks {
            push(self.hooks.entry((policy.clone(), *phase)).or_default(), *took);
        }
    }

    /// How long a pod takes to end; `false`: nothing is known of its workload.
    pub(crate) fn ending(&self, pod: &Pod) -> (Times, bool) {
        match self.endings.get(&Workload::of(pod)) {
            Some(seen) => (Times::Seen(sorted(seen)), true),
            None => {
                let grace = Duration::from_secs(pod.grace_seconds);
                (Times::Between(ENDS.min(grace), grace), false)
            }
        }
    }

    /// How long a budget lacks a pod that has ended.
    pub(crate) fn replacement(&self, namespace: &str, budget: &str) -> (Times, bool) {
        match self.replacements.get(&(namespace.to_owned(), budget.to_owned())) {
            Some(seen) => (Times::Seen(sorted(seen)), true),
            None => (Times::Between(*READY_WITHIN.start(), *READY_WITHIN.end()), false),
        }
    }

    /// How long a hook takes.
    pub(crate) fn hook(&self, policy: &str, phase: HookPhase) -> Option<Times> {
        let seen = self.hooks.get(&(policy.to_owned(), phase))?;
        Some(Times::Seen(sorted(seen)))
    }
}

fn push(times: &mut Vec<Duration>, took: Duration) {
    if times.len() == KEPT {
        times.remove(0);
    }
    times.push(took);
}

fn sorted(times: &[Duration]) -> Vec<Duration> {
    let mut times = times.to_vec();
    times.sort();
    times
}

/// Times of which one can be drawn.
#[derive(Clone, Debug)]
pub(crate) enum Times {
    /// They took this long, the shortest first; not empty.
    Seen(Vec<Duration>),
    /// Nothing is known but these bounds: each factor is as likely as every other.
    Between(Duration, Duration),
}

impl Times {
    pub(crate) fn draw(&self, random: &mut Rng) -> Duration {
        match self {
            // Between two neighbours, so that a few times do not give the same few ends again and again.
            Self::Seen(seen) => {
                let place = random.f64() * seen.len().saturating_sub(1) as f64;
                let at = |place: usize| seen.get(place).copied().unwrap_or_default();
                let (low, high) = (at(place as usize), at(place as usize + 1).max(at(place as usize)));
                low + (high - low).mul_f64(place.fract())
            }
            Self::Between(low, high) if low < high && !low.is_zero() => {
                low.mul_f64((high.as_secs_f64() / low.as_secs_f64()).powf(random.f64()))
            }
            Self::Between(low, _) => *low,
        }
    }
}
