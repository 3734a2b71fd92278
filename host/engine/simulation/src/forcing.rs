//! Force at the deadline: when a drain may delete what the operator named, and how.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{
    Checkpoint, CommandId, Drain, ForceAtDeadline, ForcedPods, HookPhase, Notice, Phase, Pod, PodRef, Reason,
    Request, Settings, Task, Time, Uid, Verdict, whole_millis,
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

/// How many evictions of this world hang, in a thousand.
pub(crate) fn evictions_hang(rng: &mut Rng, settings: &Settings) -> u32 {
    match settings.at_deadline {
        Some(_) if rng.chance(400) => u32::try_from(rng.between(300, 1000)).unwrap_or(0),
        _ => 0,
    }
}

/// What a process has done and reported of it.
#[derive(Debug, Default)]
pub(crate) struct ForceRecord {
    reported: Vec<PodRef>,
    /// The pods whose last request was such a deletion.
    pub(crate) sent: BTreeSet<Uid>,
    /// Since when pods are evicted, according to the process.
    evicts_since: Option<Time>,
}

impl ForceRecord {
    /// Another process starts. If an earlier one has evicted pods, they were asked to leave before.
    pub(crate) fn resumed(now: Time, checkpoint: Option<&Checkpoint>) -> Self {
        let has_evicted = |mark: &&Checkpoint| {
            !matches!(
                mark.phase,
                Phase::Planning | Phase::Preparing | Phase::Cordoning | Phase::Holding
            )
        };
        let saved = checkpoint.and_then(|mark| mark.begun.evictions);
        let since = saved.or_else(|| checkpoint.filter(has_evicted).map(|mark| mark.started));
        Self {
            evicts_since: since.map(|since| since.min(now)),
            ..Self::default()
        }
    }

    /// Since when pods are evicted, according to the process.
    pub(crate) const fn evicts_since(&self) -> Option<Time> {
        self.evicts_since
    }

    /// When deletions begin, and how long flow control may delay them.
    fn times(&self, now: (u64, Time), force: &ForceAtDeadline, deadline: u64) -> (u64, u64) {
        let (now, process_now) = now;
        let begins = deadline.saturating_sub(whole_millis(force.within));
        let latest = deadline.saturating_sub(RESERVE + force.grace_seconds * 1000);
        let since = self.evicts_since.unwrap_or(process_now);
        let has_asked = now.saturating_sub(whole_millis(process_now.since(since))) <= begins;
        (if has_asked { begins } else { latest }, latest)
    }
}

impl Invariants {
    /// Invariant 4: the command deletes a pod because the deadline is near.
    pub(crate) fn is_forced(&self, now: u64, task: &Task, request: &Request, pod: &Pod) -> bool {
        let (Task::Delete { .. }, Some(force)) = (task, &request.settings.at_deadline) else {
            return false;
        };
        let Some(deadline) = self.knowledge.deadline else {
            return false;
        };
        let (begins, _) = self.forced.times((now, self.process_now), force, deadline);
        (begins..deadline).contains(&now) && self.is_named(force, pod)
    }

    /// The operator allows the pod to be deleted.
    fn is_named(&self, force: &ForceAtDeadline, pod: &Pod) -> bool {
        let uid = &pod.id.uid;
        let is_meant = match self.plans.verdicts.get(uid) {
            Some(Verdict::Evict | Verdict::Delete) => true,
            Some(Verdict::AwaitCompletion) => {
                force.pods.await_completion || self.knowledge.finished.contains(uid)
            }
            _ => false,
        };
        let namespaces = force.pods.namespaces.as_ref();
        is_meant && namespaces.is_none_or(|names| names.contains(&pod.id.namespace))
    }

    /// Invariants 7 and 8: deletions because the deadline is near have places of their own, and do not wait for the answer
    /// to an eviction.
    pub(crate) fn has_place(
        &self,
        uid: &Uid,
        is_forced: bool,
        request: &Request,
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        let removals = || outstanding.values().filter(|task| task.removes().is_some());
        let places = removals().filter(|task| self.is_sent_at_deadline(task) == is_forced);
        let under_way = places.count();
        if under_way >= request.settings.max_in_flight {
            return broken(
                7,
                format!("pod {uid} is asked although {under_way} requests are under way"),
            );
        }
        let may_be_overtaken = |task: &Task| is_forced && matches!(task, Task::Evict { .. });
        let of_pod = |task: &&Task| task.removes().is_some_and(|pod| pod.uid == *uid);
        if removals().filter(of_pod).all(may_be_overtaken) {
            Ok(())
        } else {
            broken(
                8,
                format!("pod {uid} is asked while its last request is under way"),
            )
        }
    }

    fn is_sent_at_deadline(&self, task: &Task) -> bool {
        matches!(task, Task::Delete { pod, .. } if self.forced.sent.contains(&pod.uid))
    }

    /// Invariant 6: every named pod is deleted when that is due. Only hooks may delay it, other deletions of this kind, and
    /// flow control until the grace period would be cut off.
    pub(crate) fn is_forced_when_due(
        &self,
        now: u64,
        drain: &Drain,
        request: &Request,
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        let (Some(force), Some(deadline)) = (&request.settings.at_deadline, self.knowledge.deadline) else {
            return Ok(());
        };
        let (begins, latest) = self.forced.times((now, self.process_now), force, deadline);
        let removes = drain.phase() == Phase::Evicting && drain.outcome().is_none();
        if !removes || now < begins || self.removal_is_timely(now, &Uid::new("")).is_err() {
            return Ok(());
        }
        let is_of_deadline = |task: &&Task| self.is_sent_at_deadline(task);
        if outstanding.values().filter(is_of_deadline).count() >= request.settings.max_in_flight {
            return Ok(());
        }
        let own = request.settings.own_pod.as_ref().map(|own| &own.uid);
        let is_due = |pod: &Pod| {
            let uid = &pod.id.uid;
            let is_handled = self.forced.sent.contains(uid) || self.knowledge.deleting.contains(uid);
            let is_deleted = |task: &Task| matches!(task, Task::Delete { pod, .. } if pod.uid == *uid);
            let may_leave = !pod.is_mirror() && Some(uid) != own;
            may_leave && self.is_named(force, pod) && !is_handled && !outstanding.values().any(is_deleted)
        };
        let has_hooks = request
            .policies
            .iter()
            .any(|policy| policy.phases.contains(&HookPhase::BeforeEvict));
        let may_wait = |reason: &Reason| match reason {
            Reason::HookRunning { .. } | Reason::UidDisproved => true,
            Reason::Throttled { .. } => now < latest,
            Reason::ParallelLimit => has_hooks,
            _ => false,
        };
        let there = &self.knowledge.there;
        let waiting = drain.waiting();
        let mut due = waiting
            .iter()
            .filter(|(pod, _)| there.get(&pod.uid).is_some_and(is_due));
        match due.find(|(_, reason)| !may_wait(reason)) {
            Some((pod, reason)) => broken(
                6,
                format!(
                    "pod {} is to be deleted before the deadline, and waits: {reason:?}",
                    pod.uid
                ),
            ),
            None => Ok(()),
        }
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
                if !self.forced.reported.iter().any(|known| known.uid == *uid) {
                    self.forced.reported.push(pod.clone());
                }
                Ok(())
            }
            Notice::Phase(Phase::Evicting) => {
                self.forced.evicts_since.get_or_insert(self.process_now);
                Ok(())
            }
            Notice::Finished { summary, .. } if summary.forced != self.forced.reported => broken(
                6,
                format!(
                    "the summary names {:?}, not {:?}",
                    summary.forced, self.forced.reported
                ),
            ),
            _ => Ok(()),
        }
    }
}
