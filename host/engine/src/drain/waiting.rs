//! Why each pod is still there, from a closed list.

use core::time::Duration;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::eviction_target::{Answered, AwaitingDeletion, EvictionTarget, State};
use super::plan_state::PodState;
use super::wave_run::WaveRun;
use crate::reason::SLACK;
use crate::uid_map::UidMap;
use crate::{HookPhase, Notice, Phase, Pod, PodRef, Reason, Subject, Time, Uid, Verdict};

/// The reason that was reported last of each pod.
#[derive(Debug, Default)]
pub(super) struct ReportedReasons(UidMap<Reason>);

impl ReportedReasons {
    /// The pod is gone.
    pub(super) fn forget(&mut self, uid: &Uid) {
        self.0.remove(uid);
    }
}

impl Drain {
    /// Every pod on the node and why it is there.
    pub(super) fn reasons(&self) -> Vec<(PodRef, Reason)> {
        self.cluster
            .pods()
            .values()
            .map(|pod| (pod.id.clone(), self.reason(pod).into_owned()))
            .collect()
    }

    /// Reports pods whose reason has changed.
    pub(super) fn report_reasons(&mut self) {
        let quiet = matches!(self.phase, Phase::Planning | Phase::Uncordoning | Phase::Finished);
        if quiet || self.outcome.is_some() {
            return;
        }
        let mut news = Vec::new();
        let pods = self.cluster.pods();
        let states = self.plan_state.states_of(pods);
        let reported = pods.beside(&self.reported_reasons.0);
        for ((pod, pod_state), (_, known)) in states.zip(reported) {
            let reason = self.reason_of(pod, pod_state);
            let is_known = || known.is_some_and(|known| reads_like(known, &reason));
            if *reason != Reason::Kept && !is_known() {
                news.push((pod.id.clone(), reason.into_owned()));
            }
        }
        for (pod, reason) in news {
            self.reported_reasons.0.insert(pod.uid.clone(), reason.clone());
            self.outbox.notify(Notice::PodWaits { pod, reason });
        }
    }

    /// When a pod that is ending should have ended.
    pub(super) fn graces_over(&self) -> impl Iterator<Item = Time> {
        let pods = self.plan_state.states_of(self.cluster.pods());
        pods.filter_map(|(pod, pod_state)| {
            let deletion = match pod_state {
                Some(PodState::Leaves(target)) => target.deletion(pod)?,
                _ => pod.deletion?,
            };
            Some(deletion.at + SLACK)
        })
    }

    pub(super) fn reason(&self, pod: &Pod) -> Cow<'_, Reason> {
        self.reason_of(pod, self.plan_state.pod(&pod.id.uid))
    }

    fn reason_of<'a>(&'a self, pod: &Pod, pod_state: Option<&'a PodState>) -> Cow<'a, Reason> {
        match pod_state {
            None => Cow::Owned(self.newcomers.reason()),
            Some(PodState::Keeps) => Cow::Owned(Reason::Kept),
            Some(PodState::Stays(reason)) => Cow::Borrowed(reason),
            Some(PodState::Refused(reason)) => match pod.deletion {
                Some(deletion) => Cow::Owned(Reason::ending(pod, deletion, self.now)),
                None => Cow::Borrowed(reason),
            },
            Some(PodState::Leaves(target)) => self.target_reason(pod, target),
        }
    }

    fn target_reason<'a>(&'a self, pod: &Pod, target: &'a EvictionTarget) -> Cow<'a, Reason> {
        if let Some(deletion) = target.deletion(pod) {
            return Cow::Owned(Reason::ending(pod, deletion, self.now));
        }
        match target.state() {
            State::AwaitingDeletion(awaiting) => Cow::Owned(self.awaiting_reason(pod, target, *awaiting)),
            // A pod that is asked again waits for what it has waited for before; one whose deletion is due beside the
            // unanswered eviction waits for what holds that.
            State::Asked => {
                let known = target.held().or_else(|| target.refusal());
                let known = known.map_or(Cow::Owned(Reason::EvictionRequested), Cow::Borrowed);
                self.unless_surging(pod, known)
            }
            State::Waiting => {
                let reason = self.waiting_reason(pod, target);
                self.unless_surging(pod, reason)
            }
        }
    }

    /// A budget holds such a pod only until it is replaced.
    fn unless_surging<'a>(&self, pod: &Pod, reason: Cow<'a, Reason>) -> Cow<'a, Reason> {
        let may_surge = matches!(*reason, Reason::BudgetExhausted { .. }) && self.has_surges();
        let surging = may_surge.then(|| self.surge_reason(&pod.id.uid)).flatten();
        surging.map_or(reason, Cow::Owned)
    }

    fn awaiting_reason(&self, pod: &Pod, target: &EvictionTarget, awaiting: AwaitingDeletion) -> Reason {
        match awaiting.answered() {
            Answered::Accepted => {
                let forced = target.forced().map(|forced| forced.grace_seconds);
                let grace = forced.or_else(|| self.grace_override(pod));
                let grace = grace.unwrap_or(pod.grace_seconds);
                Reason::Terminating {
                    until: awaiting.since() + Duration::from_secs(grace),
                }
            }
            Answered::NotFound | Answered::UidMismatch => Reason::UidDisproved,
            Answered::NamespaceTerminating => Reason::NamespaceTerminating,
        }
    }

    fn waiting_reason<'a>(&'a self, pod: &Pod, target: &'a EvictionTarget) -> Cow<'a, Reason> {
        let is_forced = self.is_forced(&pod.id.uid);
        match self.reason_before_asking(pod, target, is_forced) {
            Some(reason) => Cow::Owned(reason),
            None => target
                .wait_reason(self.now, is_forced)
                .map_or(Cow::Owned(Reason::ParallelLimit), Cow::Borrowed),
        }
    }

    /// Why the pod's turn has not come.
    fn reason_before_asking(&self, pod: &Pod, target: &EvictionTarget, is_forced: bool) -> Option<Reason> {
        let wave = self.plan_state.wave_of_target(target);
        let not_started = || Reason::WaveNotStarted {
            wave: wave.map_or_else(String::new, |run| run.wave().name.clone()),
        };
        if let Some(reason) = self.phase_reason() {
            return Some(reason);
        }
        if self.phase.is_before_evictions() {
            return Some(not_started());
        }
        if !self.cluster.is_cordoned() {
            return Some(Reason::NodeUncordoned);
        }
        if self.paused {
            return Some(Reason::DriverStopping);
        }
        if target.verdict() == Verdict::AwaitCompletion && !pod.is_finished() && !is_forced {
            return Some(Reason::AwaitingCompletion);
        }
        if !self.may_be_next(&pod.id.uid) {
            return Some(not_started());
        }
        let has_begun = wave.is_some_and(|run| run.has_begun_for(&pod.id.uid));
        if !has_begun && !is_forced {
            let hook = wave.and_then(|run| self.wave_hook_reason(run));
            return Some(hook.unwrap_or_else(not_started));
        }
        None
    }

    /// Hooks of the whole node that hold every pod up.
    fn phase_reason(&self) -> Option<Reason> {
        let phase = match self.phase {
            Phase::Preparing => HookPhase::BeforeCordon,
            Phase::Holding => HookPhase::BeforeDrain,
            Phase::RollingBack => HookPhase::OnCancel,
            _ => return None,
        };
        self.hook_reason(phase, &Subject::Node)
    }

    /// The hook that pods of the wave wait for: the wave is the next one, or has begun before they came.
    fn wave_hook_reason(&self, run: &WaveRun) -> Option<Reason> {
        let name = &run.wave().name;
        let next = self.plan_state.waves().iter().find(|run| !run.has_ended());
        let is_next = next.is_some_and(|next| next.wave().name == *name);
        let subject = Subject::Wave(name.clone());
        (is_next || run.has_begun())
            .then(|| self.hook_reason(HookPhase::BeforeWave, &subject))
            .flatten()
    }
}

/// The same to a reader: a moment or a number that has moved a little is not reported again.
fn reads_like(known: &Reason, reason: &Reason) -> bool {
    use Reason::{BudgetExhausted, Terminating, TerminatingPastGrace};
    match (known, reason) {
        (Terminating { .. }, Terminating { .. }) => true,
        (BudgetExhausted { budget: known, .. }, BudgetExhausted { budget, .. }) => known == budget,
        (
            TerminatingPastGrace {
                finalizers: known, ..
            },
            TerminatingPastGrace { finalizers, .. },
        ) => known == finalizers,
        _ => known == reason,
    }
}
