//! Force at the deadline: shortly before it, the drain deletes those of the pods named by the operator that remain.
//!
//! It begins before the deadline and not at it, because after the deadline a drain may delete nothing. A forced pod
//! skips its wave's turn and its disruption budget, but no hook. Nothing else may delay it: neither evictions that hang,
//! which it does not wait for and whose places it does not need, nor flow control beyond the time that is left.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Drain;
use super::eviction_target::Forced;
use super::outbox::Job;
use crate::{
    ForceAtDeadline, HookPhase, Intent, Notice, Pod, PodRef, Reason, Removal, Subject, Task, Time, Uid,
};

/// The pods that the drain has deleted, and when it began to evict.
#[derive(Debug, Default)]
pub(super) struct Forcing {
    pods: Vec<PodRef>,
    evicts_since: Option<Time>,
}

impl Forcing {
    pub(super) fn pods(&self) -> &[PodRef] {
        &self.pods
    }

    /// Since when the drain evicts pods.
    pub(super) const fn evicts_since(&self) -> Option<Time> {
        self.evicts_since
    }

    /// Since when earlier processes have evicted pods.
    pub(super) const fn restore_evictions(&mut self, since: Option<Time>) {
        self.evicts_since = since;
    }
}

impl Drain {
    /// The drain evicts pods from now on, perhaps not for the first time. Where it is to force pods, another process must
    /// know since when.
    pub(super) fn begin_evictions(&mut self) {
        if self.forcing.evicts_since.is_none() {
            self.forcing.evicts_since = Some(self.now);
            if self.request.settings.at_deadline.is_some() {
                self.checkpoint_state.change();
            }
        }
    }

    /// When the drain deletes remaining pods, and which; `None`: it deletes none, whatever happens.
    pub fn force_ahead(&self) -> Option<(Time, Vec<PodRef>)> {
        let force = self.request.settings.at_deadline.as_ref()?;
        let begins = self.force_begins(force, self.request.deadline?);
        let targets = self.plan_state.targets();
        let covered = targets.filter_map(|(uid, target)| {
            let pod = self.cluster.pod(uid)?;
            let is_deleted = target.forced().is_some();
            (!is_deleted && force.pods.covers(pod, target.verdict())).then(|| pod.id.clone())
        });
        Some((begins, covered.collect()))
    }

    /// When the drain begins to force pods.
    pub(super) fn forces_at(&self) -> Option<Time> {
        let force = self.request.settings.at_deadline.as_ref()?;
        let is_drain = self.request.intent == Intent::Drain && self.outcome.is_none();
        let deadline = self.request.deadline.filter(|_| is_drain)?;
        Some(self.force_begins(force, deadline))
    }

    /// Every pod is asked to leave before it is forced to. So a drain that begins to evict with less time than it is to
    /// force pods within does so only when no more than their grace periods is left.
    fn force_begins(&self, force: &ForceAtDeadline, deadline: Time) -> Time {
        let begins = force.begins(deadline);
        let evicts_since = self.forcing.evicts_since.unwrap_or(self.now);
        if evicts_since <= begins {
            begins
        } else {
            force.latest(deadline)
        }
    }

    /// Until then, flow control may delay the deletion of a forced pod.
    pub(super) fn force_latest(&self) -> Option<Time> {
        let force = self.request.settings.at_deadline.as_ref()?;
        Some(force.latest(self.request.deadline?))
    }

    /// When the drain forces pods, and when it does so in spite of flow control.
    pub(super) fn force_timers(&self) -> impl Iterator<Item = Time> {
        self.forces_at().into_iter().chain(self.force_latest())
    }

    /// Whether the drain is to delete the pod now if it remains: the time has come, and the operator named it.
    pub(super) fn is_forced(&self, uid: &Uid) -> bool {
        let covers = |force: &ForceAtDeadline| {
            let pod = self.cluster.pod(uid);
            let target = self.plan_state.target(uid);
            pod.zip(target)
                .is_some_and(|(pod, target)| force.pods.covers(pod, target.verdict()))
        };
        self.forces_at().is_some_and(|begins| self.now >= begins)
            && self.request.settings.at_deadline.as_ref().is_some_and(covers)
    }

    /// Deletes the pods whose time has come.
    pub(super) fn force_pods(&mut self) {
        if !self.may_ask() {
            return;
        }
        self.report_unconfirmed();
        self.continue_hooks();
        let targets = self.plan_state.targets();
        let forced = targets.filter(|(uid, _)| self.is_forced(uid));
        let pods: Vec<Arc<Pod>> = forced
            .filter_map(|(uid, _)| self.cluster.shared_pod(uid))
            .cloned()
            .collect();
        for pod in &pods {
            let Some(grace_seconds) = self.grace_of_forced(pod) else {
                continue;
            };
            let hold = self.force_or_hold(pod, grace_seconds);
            if pod.deletion.is_none()
                && let Some(target) = self.plan_state.target_mut(&pod.id.uid)
            {
                target.hold(hold);
            }
        }
    }

    /// The grace period with which the drain deletes the pod now; `None`: it does not delete it.
    fn grace_of_forced(&self, pod: &Pod) -> Option<u64> {
        let uid = &pod.id.uid;
        let force = self.request.settings.at_deadline.as_ref()?;
        let latest = self.request.deadline? - ForceAtDeadline::RESERVE;
        let own = self.grace_override(pod).unwrap_or(pod.grace_seconds);
        let left = latest.since(self.now).as_secs();
        let grace = own.min(force.grace_seconds).min(left).max(1);
        let is_open = match pod.deletion {
            None => self.plan_state.target(uid)?.may_be_forced(self.now),
            // The API server lets a grace period be shortened, never prolonged.
            Some(deletion) => {
                let ends_late = deletion.at > latest && deletion.grace_seconds > grace;
                ends_late && self.plan_state.target(uid)?.may_be_shortened(self.now)
            }
        };
        (is_open && !pod.is_mirror() && self.may_be_next(uid)).then_some(grace)
    }

    /// Whether a deletion of this pod that has not been sent yet is still wanted.
    pub(super) fn may_force(&self, uid: &Uid) -> bool {
        let latest = self.request.deadline.map(|end| end - ForceAtDeadline::RESERVE);
        let ends_late = |pod: &Pod| {
            pod.deletion
                .is_none_or(|deletion| latest.is_some_and(|latest| deletion.at > latest))
        };
        self.is_forced(uid) && self.may_be_next(uid) && self.cluster.pod(uid).is_some_and(ends_late)
    }

    /// Deletes the pod, or says why not now.
    fn force_or_hold(&mut self, pod: &Pod, grace_seconds: u64) -> Option<Reason> {
        let has_time = self.force_latest().is_some_and(|latest| self.now < latest);
        if let Some(reason) = self.throttle.holds(self.now).filter(|_| has_time) {
            return Some(reason);
        }
        if let Some(reason) = self.hooks_hold(pod) {
            return Some(reason);
        }
        // Not as few as the API server answers evictions in time: a webhook may hold up these alone.
        if self.outbox.removals(true) >= self.max_in_flight() {
            return Some(Reason::ParallelLimit);
        }
        self.force(pod, grace_seconds);
        None
    }

    /// The hook of the pod's wave or of the pod itself that must finish first. No hook begins for a pod that is already
    /// terminating: if another client deleted it in the middle of its hooks, it keeps its grace period.
    fn hooks_hold(&mut self, pod: &Pod) -> Option<Reason> {
        let uid = &pod.id.uid;
        let wave = self.plan_state.wave_of(uid).filter(|run| !run.has_begun_for(uid));
        let wave = wave.map(|run| (HookPhase::BeforeWave, Subject::Wave(run.wave().name.clone())));
        let own = (HookPhase::BeforeEvict, Subject::Pod(uid.clone()));
        for (phase, subject) in wave.into_iter().chain([own]) {
            let is_open = if pod.deletion.is_some() {
                self.are_done(phase, &subject)
            } else if phase == HookPhase::BeforeEvict
                && !self.is_in_hook(uid)
                && self.is_hook_place_missing(uid)
            {
                return Some(Reason::ParallelLimit);
            } else {
                self.gate(phase, &subject).is_open()
            };
            if !is_open {
                return Some(self.hook_reason(phase, &subject).unwrap_or(Reason::ParallelLimit));
            }
        }
        None
    }

    /// Continues hooks of pods whose wave has not begun: they began near a deadline that has moved since.
    fn continue_hooks(&mut self) {
        let keys = self.hooks.open().map(|(key, _)| key);
        let waits = |uid: &Uid| !self.plan_state.has_begun_for(uid);
        let subjects: Vec<Subject> = keys
            .filter(|key| key.phase == HookPhase::BeforeEvict)
            .map(|key| &key.subject)
            .filter(|subject| matches!(subject, Subject::Pod(uid) if waits(uid)))
            .cloned()
            .collect();
        for subject in subjects {
            self.gate(HookPhase::BeforeEvict, &subject);
        }
    }

    fn force(&mut self, pod: &Pod, grace_seconds: u64) {
        let uid = &pod.id.uid;
        let forced = Forced {
            grace_seconds,
            reason: self.reason(pod).into_owned(),
            is_shortened: pod.deletion.is_some(),
            is_reported: false,
            sent_before: None,
        };
        let Some(target) = self.plan_state.target_mut(uid) else {
            return;
        };
        let request = target.force(forced);
        let task = Task::Delete {
            pod: pod.id.clone(),
            grace_seconds: Some(grace_seconds),
        };
        let job = Job::Remove {
            uid: uid.clone(),
            by: Removal::Delete,
            request,
            forced: true,
            reserved: None,
        };
        self.outbox.push(task, job);
    }

    /// Reports the deletion of a forced pod, once. Returns whether the pod is forced.
    pub(super) fn report_forced(&mut self, uid: &Uid) -> bool {
        let Some(target) = self.plan_state.target_mut(uid) else {
            return false;
        };
        let pod = target.pod().clone();
        let news = target.report_forced();
        let is_forced = target.forced().is_some();
        if let Some(forced) = news {
            self.note_forced(pod, forced);
        }
        is_forced
    }

    pub(super) fn note_forced(&mut self, pod: PodRef, forced: Forced) {
        if !self.forcing.pods.contains(&pod) {
            self.forcing.pods.push(pod.clone());
        }
        self.outbox.notify(Notice::Forced {
            pod,
            grace_seconds: forced.grace_seconds,
            reason: forced.reason,
        });
    }

    /// Reports deletions whose answer was lost: the pod is terminating, so the deletion has happened.
    fn report_unconfirmed(&mut self) {
        let targets = self.plan_state.targets();
        let unconfirmed = targets.filter(|(uid, target)| {
            target.is_force_unconfirmed() && self.cluster.pod(uid).is_some_and(|pod| pod.deletion.is_some())
        });
        let unconfirmed: Vec<Uid> = unconfirmed.map(|(uid, _)| uid.clone()).collect();
        for uid in unconfirmed {
            self.report_forced(&uid);
        }
    }
}
