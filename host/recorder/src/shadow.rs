//! What a shadow policy would have made of a drain: how its plan differs from the drain's, in data and in words.
//!
//! It must not know how plans are made, or who reports a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use scupper_common::text::one_line;
use scupper_engine::{Plan, Pod, PodRef, Uid, Verdict, Wave};
use serde::{Deserialize, Serialize};

/// Bytes of a reason, and of a message.
const TEXT: usize = 200;
/// Pods named in a sentence.
const NAMED: usize = 3;

/// The plan of a shadow policy beside that of a drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowPlan {
    /// The shadow policy.
    pub policy: String,
    /// The SHA-256 of its component, in hex.
    pub digest: String,
    /// The policy of the drain that it stands for; `None`: it would come in addition.
    pub instead_of: Option<String>,
    /// Pods that leave in the plan of the drain.
    pub leaving: usize,
    /// What came of it.
    pub result: ShadowResult,
}

/// What came of the plan of a shadow policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShadowResult {
    /// The plan is the same for every pod.
    Agrees,
    /// These pods are treated differently.
    Differs(Vec<PodDifference>),
    /// A planner of its chain refuses the drain, for this reason.
    Refuses(String),
    /// There is no plan, for this reason.
    Failed(String),
    /// The drain ended before the plan was made.
    Unfinished,
}

/// A pod that two plans treat differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodDifference {
    /// The pod.
    pub pod: PodRef,
    /// In the plan of the drain.
    pub active: Treatment,
    /// In that of the shadow.
    pub shadow: Treatment,
}

/// What a plan makes of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Treatment {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// The place of its wave in the plan, from 1, and the wave's name, if the pod leaves.
    pub wave: Option<(usize, String)>,
    /// Its place in the wave, from 1.
    pub place: Option<usize>,
    /// The longest grace period that its wave allows it, in seconds.
    pub grace_seconds: Option<u64>,
}

impl ShadowPlan {
    /// How many pods it would treat differently.
    pub fn pods(&self) -> usize {
        match &self.result {
            ShadowResult::Differs(pods) => pods.len(),
            ShadowResult::Refuses(_) => self.leaving,
            ShadowResult::Agrees | ShadowResult::Failed(_) | ShadowResult::Unfinished => 0,
        }
    }

    /// Drains would go differently with it.
    pub const fn differs(&self) -> bool {
        matches!(self.result, ShadowResult::Differs(_) | ShadowResult::Refuses(_))
    }
}

impl ShadowResult {
    /// One word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs(_) => "differs",
            Self::Refuses(_) => "refuses",
            Self::Failed(_) => "failed",
            Self::Unfinished => "unfinished",
        }
    }
}

/// `shadow policy jobs-next (instead of jobs) would treat 1 pod differently: ...`
impl fmt::Display for ShadowPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "shadow policy {}", one_line(&self.policy, TEXT))?;
        if let Some(replaced) = &self.instead_of {
            write!(out, " (instead of {})", one_line(replaced, TEXT))?;
        }
        write!(out, " {}", self.result)
    }
}

/// After the name of the shadow.
impl fmt::Display for ShadowResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pods = match self {
            Self::Agrees => return write!(out, "would change nothing"),
            Self::Refuses(message) => {
                return write!(out, "would refuse the drain: {}", one_line(message, TEXT));
            }
            Self::Failed(message) => return write!(out, "has no plan: {}", one_line(message, TEXT)),
            Self::Unfinished => return write!(out, "had no plan yet when the drain ended"),
            Self::Differs(pods) => pods,
        };
        let noun = if pods.len() == 1 { "pod" } else { "pods" };
        write!(out, "would treat {} {noun} differently: ", pods.len())?;
        for (number, pod) in pods.iter().take(NAMED).enumerate() {
            let comma = if number == 0 { "" } else { "; " };
            write!(out, "{comma}{pod}")?;
        }
        match pods.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(out, "; and {more} more"),
        }
    }
}

impl fmt::Display for PodDifference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, active, shadow } = self;
        let pod = one_line(&pod.to_string(), TEXT);
        write!(out, "{pod}: {shadow}")?;
        match (active.to_string(), shadow.to_string()) {
            (before, after) if before != after => write!(out, " instead of {before}"),
            // The wave or the place in it differs, without the pods that leave in one plan only.
            _ if active.place.is_some() && shadow.place.is_some() => {
                write!(out, ", in another order among the pods of both plans")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Treatment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.verdict)?;
        let Some((number, name)) = &self.wave else {
            return write!(out, " ({})", one_line(&self.reason, TEXT));
        };
        write!(out, " in wave {number} {}", one_line(name, TEXT))?;
        match self.grace_seconds {
            Some(seconds) => write!(out, " with grace {seconds}s"),
            None => Ok(()),
        }
    }
}

/// The pods with another verdict, another wave, another place among the pods of their wave, or another grace period, by
/// name. Waves and places count only pods that leave in both plans, so that a pod that stays moves no other one.
pub fn differences(active: &Plan, shadow: &Plan, pods: &[Pod]) -> Vec<PodDifference> {
    let leaving = |plan: &Plan| -> BTreeSet<Uid> { plan.leaving().map(|one| one.pod.clone()).collect() };
    let both: BTreeSet<Uid> = leaving(active).intersection(&leaving(shadow)).cloned().collect();
    let [before, after] = [active, shadow].map(|plan| order(plan, &both));
    let mut different: Vec<PodDifference> = pods
        .iter()
        .filter_map(|pod| {
            let uid = &pod.id.uid;
            let (one, other) = (treatment(active, pod)?, treatment(shadow, pod)?);
            let is_same = one.verdict == other.verdict
                && one.grace_seconds == other.grace_seconds
                && before.get(uid) == after.get(uid);
            (!is_same).then(|| PodDifference {
                pod: pod.id.clone(),
                active: one,
                shadow: other,
            })
        })
        .collect();
    different.sort_by(|one, other| one.pod.cmp(&other.pod));
    different
}

/// The wave of each of these pods and its place in it, both counted without other pods.
fn order(plan: &Plan, of: &BTreeSet<Uid>) -> BTreeMap<Uid, (usize, usize)> {
    let waves = plan.waves.iter();
    let waves = waves.map(|wave| wave.pods.iter().filter(|pod| of.contains(*pod)));
    let waves = waves.filter(|pods| pods.clone().next().is_some());
    let places = waves.enumerate().flat_map(|(number, pods)| {
        pods.enumerate()
            .map(move |(place, pod)| (pod.clone(), (number, place)))
    });
    places.collect()
}

/// `None`: the plan says nothing about the pod.
fn treatment(plan: &Plan, pod: &Pod) -> Option<Treatment> {
    let decision = plan.decision(&pod.id.uid)?;
    let waves = plan.waves.iter().enumerate();
    let mut places = waves.filter_map(|(number, wave)| Some((number, wave, place(wave, pod)?)));
    let found = places.next().filter(|_| decision.verdict.leaves());
    let grace = |wave: &Wave| wave.max_grace_seconds.filter(|most| *most < pod.grace_seconds);
    Some(Treatment {
        verdict: decision.verdict,
        reason: decision.reason.clone(),
        wave: found.map(|(number, wave, _)| (number + 1, wave.name.clone())),
        place: found.map(|(.., place)| place + 1),
        grace_seconds: found.and_then(|(_, wave, _)| grace(wave)),
    })
}

fn place(wave: &Wave, pod: &Pod) -> Option<usize> {
    wave.pods.iter().position(|uid| *uid == pod.id.uid)
}

#[cfg(test)]
#[path = "shadow/tests.rs"]
mod tests;
