//! Requests evictions and deletions of pods. No other code requests them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Drain;
use super::budget_tracker::{Charged, HoldsOfBudgets};
use super::eviction_target::EvictionTarget;
use super::hook_state::HookKey;
use super::outbox::Job;
use super::wave_run::WaveRun;
use crate::{HookPhase, Phase, Pod, Reason, Removal, Subject, Task, Uid, Verdict};

impl Drain {
    /// Asks every pod of the begun waves whose turn it is, in the order of the waves.
    pub(super) fn ask_pods(&mut self) {
        if !self.may_ask() {
            return;
        }
        for place in 0..self.plan_state.waves().len() {
            self.ask_pods_of_wave(place);
        }
    }

    fn ask_pods_of_wave(&mut self, place: usize) {
        let Some(run) = self.plan_state.waves().get(place).filter(|run| run.has_begun()) else {
            return;
        };
        let limit = run.wave().max_parallel;
        let may_stay_held = limit.is_none() && self.only_budgets_hold();
        let in_turn = run.left().iter().filter(|uid| run.has_begun_for(uid));
        let askable = in_turn.filter_map(|uid| self.askable(uid));
        let mut budgets = HoldsOfBudgets::default();
        let askable =
            askable.filter(|(pod, target)| !may_stay_held || !self.stays_held(pod, target, &mut budgets));
        let pods: Vec<Arc<Pod>> = askable.map(|(pod, _)| Arc::clone(pod)).collect();
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        // Nobody counts them without a limit.
        let mut leaving = limit.map_or(0, |_| self.leaving_in(place));
        for pod in &pods {
            let uid = &pod.id.uid;
            // Asked about once more: those before it may have changed something.
            if self.askable(uid).is_none() {
                continue;
            }
            let counted = limit.is_some() && self.is_leaving(uid);
            let room = counted || limit.is_none_or(|limit| leaving < limit);
            let reason = self.ask_or_hold(pod, room);
            if let Some(target) = self.plan_state.target_mut(uid) {
                target.hold(reason);
            }
            if limit.is_none() || counted {
                continue;
            }
            if self.is_restarting(uid) {
                // A rollout replaces other pods of the wave with it.
                leaving = self.leaving_in(place);
            } else {
                leaving += usize::from(self.is_leaving(uid));
            }
        }
    }

    /// Before its budget, nothing is looked at that would hold a pod up. Surges are asked for when a budget holds.
    fn only_budgets_hold(&self) -> bool {
        self.throttle.holds(self.now).is_none()
            && self.request.settings.surge.is_none()
            && self.surges.is_empty()
    }

    /// Its budget holds it as before: to ask for it would change nothing. Most pods are waiting like this at each event.
    fn stays_held<'a>(
        &'a self,
        pod: &Pod,
        target: &EvictionTarget,
        budgets: &mut HoldsOfBudgets<'a>,
    ) -> bool {
        target.held().is_some()
            && target.is_held_by_budget()
            && target.verdict() != Verdict::Delete
            && !self.is_in_hook(&pod.id.uid)
            && self.budget_holds_all(pod, budgets) == target.held()
    }

    /// How many of a wave's places are taken.
    fn leaving_in(&self, place: usize) -> usize {
        let run = self.plan_state.waves().get(place);
        let pods = run.into_iter().flat_map(WaveRun::left);
        pods.filter(|uid| self.is_leaving(uid)).count()
    }

    /// Pods may be asked at all: the drain continues, and no new pod can come to the node meanwhile.
    pub(super) fn may_ask(&self) -> bool {
        self.phase == Phase::Evicting && self.outcome.is_none() && !self.paused && self.cluster.is_cordoned()
    }

    /// This very pod may be asked, by everything the watch and the plan say.
    fn may_remove(&self, uid: &Uid) -> bool {
        let known = self.cluster.pod(uid).zip(self.plan_state.target(uid));
        known.is_some_and(|(pod, target)| self.may_remove_target(pod, target))
    }

    fn may_remove_target(&self, pod: &Pod, target: &EvictionTarget) -> bool {
        let is_there = !pod.is_mirror() && pod.deletion.is_none();
        self.may_ask() && is_there && target.verdict().leaves() && self.may_be_next(&pod.id.uid)
    }

    /// The pod, if it waits to be asked and its time has come. One that the drain is to delete because the deadline is
    /// near is not asked.
    fn askable(&self, uid: &Uid) -> Option<(&Arc<Pod>, &EvictionTarget)> {
        let target = self.plan_state.target(uid)?;
        if !target.is_due(self.now) {
            return None;
        }
        let pod = self.cluster.shared_pod(uid)?;
        let ends_by_itself = target.verdict() == Verdict::AwaitCompletion && !pod.is_finished();
        let waits = !ends_by_itself && !self.is_forced(uid);
        (waits && self.may_remove_target(pod, target)).then_some((pod, target))
    }

    /// It holds one of the wave's places: its hooks run, it is asked, or it is ending. The driver's own pod holds
    /// none while others are there: it lets newcomers pass.
    pub(super) fn is_leaving(&self, uid: &Uid) -> bool {
        let Some(target) = self.plan_state.target(uid) else {
            return false;
        };
        target.is_asked()
            || self.cluster.pod(uid).is_some_and(|pod| pod.deletion.is_some())
            || (self.is_in_hook(uid) && self.may_be_next(uid))
            || self.is_restarting(uid)
    }

    /// Asks the pod, or says why not now.
    fn ask_or_hold(&mut self, pod: &Pod, room: bool) -> Option<Reason> {
        let uid = &pod.id.uid;
        let surges = self.surge_comes_first(pod);
        if !self.is_in_hook(uid) {
            if let Some(reason) = self.throttle.holds(self.now) {
                return Some(reason);
            }
            if !room {
                return Some(Reason::ParallelLimit);
            }
            if !surges && let Some(reason) = self.budget_hold(pod) {
                self.raise(uid);
                self.want_surge(uid);
                return Some(reason);
            }
            if self.is_hook_place_missing(uid) {
                return Some(Reason::ParallelLimit);
            }
        }
        let subject = Subject::Pod(uid.clone());
        if !self.gate(HookPhase::BeforeEvict, &subject).is_open() {
            return self.hook_reason(HookPhase::BeforeEvict, &subject);
        }
        if surges {
            return Some(self.surge(uid));
        }
        if self.outbox.removals(false) >= self.most_evictions() {
            return Some(Reason::ParallelLimit);
        }
        self.ask(pod);
        None
    }

    pub(super) fn budget_hold(&mut self, pod: &Pod) -> Option<Reason> {
        if self.verdict_on(&pod.id.uid) == Some(Verdict::Delete) {
            return None;
        }
        let hold = self.budget_holds(pod)?.clone();
        let now = self.now;
        if let Some(target) = self.plan_state.target_mut(&pod.id.uid) {
            target.hold_by_budget(now);
        }
        Some(hold)
    }

    /// Its hooks may continue: its wave has begun, and it may be asked once they have finished.
    pub(super) fn is_in_turn(&self, uid: &Uid) -> bool {
        (self.plan_state.has_begun_for(uid) || self.is_forced(uid)) && self.may_remove(uid)
    }

    /// As many pods as may be in hooks at once are. Hooks of pods that the drain is to delete because the deadline is
    /// near have places of their own.
    pub(super) fn is_hook_place_missing(&self, uid: &Uid) -> bool {
        let is_forced = self.is_forced(uid);
        let counts = |pod: &Uid| self.is_in_turn(pod) && self.is_forced(pod) == is_forced;
        let in_turn = |key: &HookKey| matches!(&key.subject, Subject::Pod(pod) if counts(pod));
        let hooks = self.hooks.open().filter(|(key, _)| in_turn(key)).count();
        hooks >= self.max_in_flight()
            && self
                .hook_reason(HookPhase::BeforeEvict, &Subject::Pod(uid.clone()))
                .is_some()
    }

    pub(super) fn max_in_flight(&self) -> usize {
        self.request.settings.max_in_flight.max(1)
    }

    /// As the settings say, and no more than the API server bears.
    pub(super) fn most_evictions(&self) -> usize {
        self.max_in_flight().min(self.eviction_limit.max(1))
    }

    fn verdict_on(&self, uid: &Uid) -> Option<Verdict> {
        self.plan_state.target(uid).map(EvictionTarget::verdict)
    }

    fn ask(&mut self, pod: &Pod) {
        let uid = &pod.id.uid;
        let grace_seconds = self.grace_override(pod);
        let (by, reserved) = match self.verdict_on(uid) {
            Some(Verdict::Delete) => (Removal::Delete, None),
            _ => (Removal::Evict, self.reserve(pod)),
        };
        let Some(target) = self.plan_state.target_mut(uid) else {
            return;
        };
        let request = target.ask(by);
        let pod = pod.id.clone();
        let uid = pod.uid.clone();
        let task = match by {
            Removal::Delete => Task::Delete { pod, grace_seconds },
            Removal::Evict => Task::Evict { pod, grace_seconds },
        };
        let job = Job::Remove {
            uid,
            by,
            request,
            forced: false,
            reserved,
        };
        self.outbox.push(task, job);
    }

    /// The grace period to ask for, where it is not the pod's own: the settings' for every pod, the wave's cap for
    /// those above it.
    pub(super) fn grace_override(&self, pod: &Pod) -> Option<u64> {
        let settings = self.request.settings.grace_override(pod.grace_seconds);
        let wanted = settings.unwrap_or(pod.grace_seconds);
        let cap = self
            .plan_state
            .wave_of(&pod.id.uid)
            .and_then(|run| run.wave().max_grace_seconds);
        cap.filter(|cap| *cap < wanted).or(settings)
    }

    /// Withdraws removals that are no longer allowed and that the driver has not started.
    pub(super) fn take_back_removals(&mut self) {
        let mut queued = self.outbox.queued_removals();
        queued.retain(|uid| !self.is_still_wanted(uid));
        if queued.is_empty() {
            return;
        }
        let taken = self
            .outbox
            .take_back(|task| task.removes().is_some_and(|pod| queued.contains(&pod.uid)));
        for (_, job) in taken {
            self.job_taken_back(job);
        }
    }

    /// What was decided on this pod's eviction or deletion still holds.
    fn is_still_wanted(&self, uid: &Uid) -> bool {
        let forced = self.plan_state.target(uid).and_then(EvictionTarget::forced);
        match forced {
            None => self.may_remove(uid) && !self.is_forced(uid),
            Some(_) => self.may_ask() && self.may_force(uid),
        }
    }

    /// Treats a withdrawn job as if it had never been issued.
    pub(super) fn job_taken_back(&mut self, job: Job) {
        match job {
            Job::Remove { uid, reserved, .. } => {
                self.release(reserved, Charged::No);
                if let Some(target) = self.plan_state.target_mut(&uid) {
                    target.take_back();
                }
            }
            Job::Step(key) => self.step_taken_back(&key),
            Job::Plan => self.chain = None,
            Job::Write(_) => self.cordon.refuse(),
            Job::Surge(deployment) => self.surge_taken_back(&deployment),
            // A replica that was not taken back is asked for again.
            Job::List(_) | Job::Volumes { .. } | Job::TakeBack(_) | Job::ChooseSurges => {}
        }
    }
}
