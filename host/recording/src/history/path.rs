//! Why a drain took as long as it did: from its end back to its begin, always along the pod that was waited for.

use std::collections::BTreeSet;

use scupper_engine::{PodRef, Reason, Time};

use super::{DrainHistory, PodHistory};

/// A time in which the drain as a whole waited for one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// From when on.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// The pod that was waited for, with its controller, and why it was still there; `None`: no pod was, so that the drain
    /// planned, or was about to end.
    pub pod: Option<(PodRef, Option<String>, Reason)>,
}

/// The parts, from begin to end.
pub(super) fn of(history: &DrainHistory) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = history.ended;
    let mut next = last(history);
    // A jump goes to the pod that made room; twice to the same one would go round in circles.
    let mut seen = BTreeSet::new();
    while let Some(pod) = next.take() {
        let gone = pod.gone.unwrap_or(at).min(at);
        push(&mut parts, gone, at, None);
        at = gone;
        seen.insert(&pod.pod.uid);
        for wait in pod.waits.iter().rev() {
            if wait.from >= at {
                continue;
            }
            let made_room = |other: &PodHistory| match wait.reason {
                Reason::WaveNotStarted { .. } => other.wave < pod.wave,
                Reason::ParallelLimit => true,
                _ => false,
            };
            let made_room = |other: &&PodHistory| !seen.contains(&other.pod.uid) && made_room(other);
            next = last_gone(history.pods.iter().filter(made_room), wait.from, at);
            if next.is_some() {
                break;
            }
            let waited = (pod.pod.clone(), pod.owner.clone(), wait.reason.clone());
            push(&mut parts, wait.from, at, Some(waited));
            at = wait.from;
        }
    }
    push(&mut parts, history.started, at, None);
    parts.reverse();
    parts
}

fn push(parts: &mut Vec<Part>, from: Time, to: Time, pod: Option<(PodRef, Option<String>, Reason)>) {
    if from < to {
        parts.push(Part { from, to, pod });
    }
}

/// The pod that the drain waited for last: one that is still there, or the last one that was gone.
fn last(history: &DrainHistory) -> Option<&PodHistory> {
    let still_there = |pod: &&PodHistory| pod.gone.is_none();
    let there = history.pods.iter().find(still_there);
    there.or_else(|| history.pods.iter().max_by_key(|pod| pod.gone))
}

/// The one that was gone last in this time.
fn last_gone<'a>(pods: impl Iterator<Item = &'a PodHistory>, from: Time, to: Time) -> Option<&'a PodHistory> {
    let in_time = |pod: &&PodHistory| pod.gone.is_some_and(|gone| from < gone && gone <= to);
    pods.filter(in_time).max_by_key(|pod| pod.gone)
}
