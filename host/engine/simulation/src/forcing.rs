//! Force at the deadline: when a drain may delete what the operator named, and how.
//!
//! The settings are drawn from a separate stream: the worlds of older seeds stay the same.

use std::collections::BTreeSet;
use std::time::Duration;

use scupper_engine::{
    ForceAtDeadline, ForcedPods, HookPhase, Notice, Pod, PodRef, Request, Subject, Task, Uid, Verdict,
    whole_millis,
};

use crate::invariants::Invariants;
use crate::rng::Rng;
use crate::scenario::Mood;
use crate::violation::{Checked, broken};

/// The grace period of a deleted pod ends this long before the deadline.
const RESERVE: u64 = 10_000;

/// What a drain of this world deletes shortly before its deadline.
pub(crate) fn at_deadline(rng: &mut Rng, mood: Mood) -> Option<ForceAtDeadline> {
    if mood != Mood::Wild || !rng.chance(400) {
        return None;
    }
    let mut namespaces = BTreeSet::new();
    for number in 0..3 {
        if rng.chance(600) {
            namespaces.insert(format!("ns{number}"));
        }
    }
    let grace_seconds = rng.between(1, 60);
    let least = grace_seconds * 1000 + RESERVE + 1;
    let longest = if rng.chance(200) { 600_000 } else { 60_000 };
    Some(ForceAtDeadline {
        pods: ForcedPods {
            namespaces: rng.chance(700).then_some(namespaces),
            priority_below: None,
            await_completion: rng.chance(300),
        },
        grace_seconds,
        within: Duration::from_millis(least + rng.below(longest)),
    })
}

/// What a process has reported of it.
#[derive(Debug, Default)]
pub(crate) struct ForceRecord(Vec<PodRef>);

impl Invariants {
    /// Invariant 4: the command deletes a pod because the deadline is near.
    pub(crate) fn is_forced(&self, now: u64, task: &Task, request: &Request, pod: &Pod) -> bool {
        let (Task::Delete { .. }, Some(force)) = (task, &request.settings.at_deadline) else {
            return false;
        };
        let Some(deadline) = self.knowledge.deadline else {
            return false;
        };
        let begins = deadline.saturating_sub(whole_millis(force.within));
        let uid = &pod.id.uid;
        let is_meant = match self.plans.verdicts.get(uid) {
            Some(Verdict::Evict | Verdict::Delete) => true,
            Some(Verdict::AwaitCompletion) => {
                force.pods.await_completion || self.knowledge.finished.contains(uid)
            }
            _ => false,
        };
        if self.deletes_in_turn(uid) {
            return false;
        }
        let namespaces = force.pods.namespaces.as_ref();
        let is_named = namespaces.is_none_or(|names| names.contains(&pod.id.namespace));
        (begins..deadline).contains(&now) && is_meant && is_named
    }

    /// The plan deletes the pod anyway, and it is its turn.
    fn deletes_in_turn(&self, uid: &Uid) -> bool {
        let deletes = self.plans.verdicts.get(uid) == Some(&Verdict::Delete);
        let is_first = !self.knowledge.deleting.contains(uid);
        deletes && is_first && self.plans.clone().ask(uid, &self.knowledge.there).is_ok()
    }

    /// Invariants 4, 7 and 8: the grace period of a forced pod, the hook of its wave, and why it is deleted again.
    pub(crate) fn force_is_right(&self, now: u64, task: &Task, request: &Request, pod: &Pod) -> Checked {
        let (Task::Delete { grace_seconds, .. }, Some(force)) = (task, &request.settings.at_deadline) else {
            return Ok(());
        };
        let uid = &pod.id.uid;
        let deadline = self.knowledge.deadline.unwrap_or_default();
        let grace = grace_seconds.unwrap_or(pod.grace_seconds);
        let most = force
            .grace_seconds
            .min(deadline.saturating_sub(RESERVE + now) / 1000);
        if grace > most.max(1) {
            return broken(
                4,
                format!("pod {uid} gets {grace} seconds of grace before the deadline, not {most}"),
            );
        }
        let wave = self.plans.wave_of(uid).map(String::from);
        if let Some(wave) = wave {
            self.all_done(request, HookPhase::BeforeWave, &Subject::Wave(wave))?;
        }
        let reported = self.knowledge.there.get(uid).and_then(|known| known.deletion);
        if self.knowledge.deleting.contains(uid) {
            // The time of the deletion is the API server's. The process compares it with the deadline by its own clock, which
            // may have been set meanwhile.
            let deadline = (self.process_now.as_millis() + deadline).saturating_sub(now);
            let ends = reported.map_or(0, |deletion| deletion.at.as_millis());
            if ends + RESERVE <= deadline {
                return broken(8, format!("pod {uid} is deleted again although it ends in time"));
            }
        }
        Ok(())
    }

    /// Every forced pod is reported, and only those.
    pub(crate) fn notes_forced(&mut self, notice: &Notice, request: &Request) -> Checked {
        match notice {
            Notice::Forced { pod, .. } if request.settings.at_deadline.is_none() => {
                broken(4, format!("pod {} is forced without the setting", pod.uid))
            }
            Notice::Forced { pod, .. } => {
                let uid: &Uid = &pod.uid;
                if !self.forced.0.iter().any(|known| known.uid == *uid) {
                    self.forced.0.push(pod.clone());
                }
                Ok(())
            }
            Notice::Finished { summary, .. } if summary.forced != self.forced.0 => broken(
                6,
                format!("the summary names {:?}, not {:?}", summary.forced, self.forced.0),
            ),
            _ => Ok(()),
        }
    }
}
