//! The planners' answers: the verdicts against which evictions are checked.
//!
//! The engine's own notice of its plan is trusted only if no policy plans; then the verdicts are checked against
//! kubectl's rules by the pods' true properties.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use scupper_engine::{
    Begun, Checkpoint, Counts, Decision, HookPhase, HookStep, Plan, Pod, Settings, Subject, Time, Uid,
    Verdict, Wave, whole_millis,
};

use crate::hookbook::HookBook;
use crate::violation::{Checked, broken};

#[derive(Clone, Debug, Default)]
pub(crate) struct Plans {
    /// The last planner's answer, until the engine adopts it.
    answered: Option<Plan>,
    pub(crate) verdicts: BTreeMap<Uid, Verdict>,
    /// The waves of the plan that first decided on a pod, for each pod.
    pub(crate) waves: BTreeMap<Uid, Rc<[Wave]>>,
    /// The waves that have begun, and the pods that stood in them then.
    pub(crate) begun: BTreeMap<String, BTreeSet<Uid>>,
    /// The first plan: its waves are in order.
    first: Option<Plan>,
    /// The last plan that the engine reported.
    current: Plan,
    overdue: BTreeSet<String>,
    /// Pods that came to the cordoned node and are kept: no drain waits for them.
    stay: BTreeSet<Uid>,
    /// The same, from an earlier process's checkpoint.
    stayed: BTreeSet<Uid>,
    /// The pods requested to be evicted, by their controller.
    asked_of: BTreeMap<String, BTreeSet<Uid>>,
    /// The same by earlier processes: how many came back.
    returned: BTreeMap<String, u32>,
    asked: BTreeSet<Uid>,
    /// They have been terminating for longer than the settings wait for.
    left_behind: BTreeSet<Uid>,
    /// What an earlier process had saved after the cordon. The first plan of this one is not for pods that it had not decided
    /// on.
    saved: Option<Counts>,
    /// What an earlier process had begun.
    before: Box<Begun>,
}

impl Plans {
    /// Another process starts from an earlier one's checkpoint.
    pub(crate) fn resumed(checkpoint: Option<&Checkpoint>) -> Self {
        Self {
            stayed: checkpoint
                .map(|checkpoint| checkpoint.stays.clone())
                .unwrap_or_default(),
            returned: checkpoint
                .map(|checkpoint| checkpoint.returns.clone())
                .unwrap_or_default(),
            saved: checkpoint
                .filter(|checkpoint| checkpoint.phase.is_past_cordoning())
                .map(|checkpoint| checkpoint.counts),
            before: checkpoint
                .map(|checkpoint| checkpoint.begun.clone())
                .unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Invariant 8: a checkpoint tells the pods that were decided on from younger ones.
    pub(crate) fn saves_the_newest(&self, checkpoint: &Checkpoint, there: &BTreeMap<Uid, Pod>) -> Checked {
        let newest = checkpoint.counts.newest;
        let decided = there
            .values()
            .filter(|pod| self.current.decision(&pod.id.uid).is_some());
        let is_right = decided.map(|pod| pod.created).max().unwrap_or_default() == newest;
        if is_right || !checkpoint.phase.needs_cordon() {
            return Ok(());
        }
        broken(
            8,
            format!("saves that the newest pod of the plan is of {newest:?}"),
        )
    }

    /// The last planner has answered with a valid plan.
    pub(crate) fn answered(&mut self, plan: &Plan, there: &BTreeMap<Uid, Pod>) {
        let mut plan = plan.clone();
        if let Some(saved) = self.saved.filter(|_| self.first.is_none()) {
            let is_known = |uid: &Uid| there.get(uid).is_none_or(|pod| pod.created <= saved.newest);
            plan.decisions.retain(|decision| is_known(&decision.pod));
            for wave in &mut plan.waves {
                wave.pods.retain(is_known);
            }
        }
        let waves: Rc<[Wave]> = plan.waves.clone().into();
        for decision in &plan.decisions {
            self.verdicts
                .entry(decision.pod.clone())
                .or_insert(decision.verdict);
            self.waves
                .entry(decision.pod.clone())
                .or_insert_with(|| waves.clone());
        }
        self.answered = Some(plan);
    }

    /// The engine reports the plan that it carries out.
    pub(crate) fn adopted(
        &mut self,
        now: Time,
        plan: &Plan,
        planners: bool,
        settings: &Settings,
        pods: &BTreeMap<Uid, Pod>,
    ) -> Checked {
        for decision in &plan.decisions {
            let pod = pods.get(&decision.pod);
            match self.verdicts.get(&decision.pod) {
                Some(verdict)
                    if verdict.leaves()
                        && decision.verdict == Verdict::Keep
                        && pod.is_some_and(|pod| is_left_behind(now, pod, settings)) =>
                {
                    self.verdicts.insert(decision.pod.clone(), Verdict::Keep);
                    self.left_behind.insert(decision.pod.clone());
                    self.asked.remove(&decision.pod);
                }
                Some(verdict)
                    if decision.verdict == Verdict::Keep
                        && pod.is_some_and(|pod| self.may_stay(pod, *verdict, settings)) =>
                {
                    self.verdicts.insert(decision.pod.clone(), Verdict::Keep);
                    self.stay.insert(decision.pod.clone());
                }
                Some(Verdict::Refuse) if self.was_decided_again(decision, planners) => {
                    if let Some(pod) = pod.filter(|_| !planners) {
                        kubectl_would(pod, decision.verdict, settings)?;
                    }
                    self.verdicts.insert(decision.pod.clone(), decision.verdict);
                    let answered = self.answered.as_ref().filter(|_| planners);
                    let waves = answered.unwrap_or(plan).waves.clone().into();
                    self.waves.insert(decision.pod.clone(), waves);
                }
                Some(verdict) if *verdict != decision.verdict => {
                    let said = (decision.verdict, verdict);
                    return broken(
                        1,
                        format!("pod {}: engine and planners disagree: {said:?}", decision.pod),
                    );
                }
                Some(_) => {}
                None if planners => {
                    return broken(
                        1,
                        format!("pod {} is in the plan but no planner was asked", decision.pod),
                    );
                }
                None => {
                    if let Some(pod) = pod {
                        kubectl_would(pod, decision.verdict, settings)?;
                        self.stays_rightly(now, pod, decision.verdict, settings)?;
                    }
                    self.verdicts.insert(decision.pod.clone(), decision.verdict);
                    let waves = plan.waves.clone().into();
                    self.waves.insert(decision.pod.clone(), waves);
                }
            }
        }
        self.current = plan.clone();
        if self.first.is_none() {
            let is_there = |name: &String| plan.waves.iter().any(|wave| wave.name == *name);
            self.before.waves.retain(|name, _| is_there(name));
            self.first = Some(if planners {
                self.answered.clone().unwrap_or_default()
            } else {
                plan.clone()
            });
        }
        Ok(())
    }

    /// A pod that might not leave has changed, and the planners have decided on it again.
    fn was_decided_again(&self, decision: &Decision, planners: bool) -> bool {
        let answered = self
            .answered
            .as_ref()
            .and_then(|plan| plan.decision(&decision.pod));
        let is_right = !planners || answered.is_some_and(|answered| answered.verdict == decision.verdict);
        decision.verdict != Verdict::Refuse && is_right
    }

    /// Invariant 7: a step gets exactly the pods of its wave, or of the plan, that are still to leave.
    pub(crate) fn tells(&self, step: &HookStep, there: &BTreeMap<Uid, Pod>, hooks: &HookBook) -> Checked {
        let none_leaves = matches!(
            step.phase,
            HookPhase::OnCancel | HookPhase::BeforeUncordon | HookPhase::AfterUncordon
        );
        let waves = self
            .current
            .waves
            .iter()
            .filter(|wave| !none_leaves && is_meant(step, wave));
        let still_leaves = |uid: &&Uid| {
            let verdict = self.verdicts.get(*uid);
            there.contains_key(*uid) && verdict.is_some_and(|verdict| verdict.leaves())
        };
        let leaving = waves.flat_map(|wave| &wave.pods).filter(still_leaves);
        let is_right = match &step.subject {
            Subject::Wave(name) if self.begun.contains_key(name) => {
                let late = leaving.filter(|uid| !self.stood_in(name, uid));
                self.tells_late_pods(step, name, late, hooks)
            }
            _ => leaving.eq(&step.leaving),
        };
        if is_right {
            return Ok(());
        }
        let (phase, subject, told) = (step.phase, &step.subject, &step.leaving);
        broken(
            7,
            format!("{phase} of {subject:?} gets {told:?} as the pods that leave"),
        )
    }

    /// The step of a wave that has begun gets pods that came later: all for which its hook has not finished, in their
    /// order. Others are among them as long as another policy's hook has not finished for them.
    fn tells_late_pods<'a>(
        &self,
        step: &HookStep,
        wave: &str,
        late: impl Iterator<Item = &'a Uid>,
        hooks: &HookBook,
    ) -> bool {
        let late: Vec<&Uid> = late.collect();
        let given = late.iter().filter(|uid| step.leaving.contains(**uid));
        let mut missing = late.iter().filter(|uid| !step.leaving.contains(**uid));
        given.copied().eq(&step.leaving)
            && missing.all(|uid| hooks.is_done_for(&step.policy, wave, uid, self))
    }

    /// A pod to be evicted or refused may still be kept: it came after the plan, and its controller's pods were evicted
    /// as often as the settings allow, or it came in spite of the cordon.
    fn may_stay(&self, pod: &Pod, verdict: Verdict, settings: &Settings) -> bool {
        let uid = &pod.id.uid;
        if self.stayed.contains(uid) {
            return true;
        }
        let was_planned = |first: &Plan| first.decision(uid).is_some();
        if self.first.as_ref().is_none_or(was_planned) {
            return false;
        }
        if verdict == Verdict::Refuse {
            return pod.cordon_toleration.is_some() || pod.created.as_millis() > 0;
        }
        let owner = controller(pod);
        let asked = self.asked_of.get(&owner).map_or(0, BTreeSet::len);
        let asked = u32::try_from(asked).unwrap_or(u32::MAX);
        let returned = self.returned.get(&owner).copied().unwrap_or(0);
        asked.saturating_add(returned) >= settings.returning_pod_evictions
    }

    /// Without a planner's verdict, a pod that kubectl would evict is kept only if it may be. Facts about a DaemonSet
    /// or a termination may have arrived after the plan.
    fn stays_rightly(&self, now: Time, pod: &Pod, verdict: Verdict, settings: &Settings) -> Checked {
        let leaves = kubectl_would(pod, way(settings), settings).is_ok();
        let is_sure = !pod.is_daemon() && !pod.is_finished() && !is_left_behind(now, pod, settings);
        if verdict == Verdict::Keep && leaves && is_sure && !self.may_stay(pod, way(settings), settings) {
            return broken(3, format!("pod {} stays although it is to leave", pod.id.uid));
        }
        Ok(())
    }

    /// The wave in which the plan puts the pod.
    pub(crate) fn wave_of(&self, uid: &Uid) -> Option<&Wave> {
        let mut waves = self.waves.get(uid)?.iter();
        waves.find(|wave| wave.pods.contains(uid))
    }

    /// The first plan has decided on it.
    pub(crate) fn was_there_first(&self, uid: &Uid) -> bool {
        let first = self.first.as_ref();
        first.is_some_and(|plan| plan.decision(uid).is_some())
    }

    /// The pod stood in the wave when that began.
    pub(crate) fn stood_in(&self, wave: &str, uid: &Uid) -> bool {
        self.begun.get(wave).is_some_and(|pods| pods.contains(uid))
    }

    /// A wave begins, or an earlier process had begun it: then not for pods that have come since.
    pub(crate) fn wave_begins(&mut self, name: &str) {
        let waves = self.current.waves.iter().filter(|wave| wave.name == name);
        let is_anew = !self.before.waves.contains_key(name);
        let pods = waves.flat_map(|wave| &wave.pods);
        let pods = pods.filter(|uid| is_anew || self.went_on(name, uid));
        let pods = pods.cloned().collect();
        self.begun.insert(String::from(name), pods);
    }

    /// The waves of the plan as it is carried out.
    pub(crate) fn waves_now(&self) -> &[Wave] {
        &self.current.waves
    }

    /// The pod is there and is to leave.
    pub(crate) fn leaves(&self, uid: &Uid, there: &BTreeMap<Uid, Pod>) -> bool {
        there.contains_key(uid) && self.verdicts.get(uid).is_some_and(|verdict| verdict.leaves())
    }

    /// The wave has begun, perhaps under an earlier process.
    pub(crate) fn has_begun(&self, wave: &str) -> bool {
        self.begun.contains_key(wave) || self.before.waves.contains_key(wave)
    }

    /// An earlier process had begun the wave for this pod, after all its hooks.
    pub(crate) fn went_on(&self, wave: &str, uid: &Uid) -> bool {
        self.before.waves.contains_key(wave) && self.was_there_first(uid) && !self.before.late.contains(uid)
    }

    /// An earlier process had begun the wave, which was to hold up the next one only until long ago.
    pub(crate) fn should_be_over(&self, wave: &str, now: Time, lateness: Duration) -> bool {
        let until = self.before.waves.get(wave).copied().flatten();
        until.is_some_and(|until| now >= until + lateness) && !self.overdue.contains(wave)
    }

    /// A pod is deleted because the deadline is near, whatever its wave.
    pub(crate) fn force(&mut self, uid: &Uid, there: &BTreeMap<Uid, Pod>) {
        if let Some(pod) = there.get(uid) {
            let asked = self.asked_of.entry(controller(pod)).or_default();
            asked.insert(uid.clone());
        }
    }

    pub(crate) fn overdue(&mut self, wave: &str) {
        self.overdue.insert(String::from(wave));
    }

    /// Before an eviction: the earlier waves must be empty or overdue, and the pod's own wave must have room.
    pub(crate) fn ask(&mut self, uid: &Uid, there: &BTreeMap<Uid, Pod>) -> Checked {
        if let Some(pod) = there.get(uid) {
            let asked = self.asked_of.entry(controller(pod)).or_default();
            asked.insert(uid.clone());
        }
        let Some(plan) = &self.first else {
            return broken(1, format!("pod {uid} is evicted before any plan was adopted"));
        };
        self.late_pod_in_turn(uid, there)?;
        let waves = plan.waves.iter();
        let Some(place) = waves.clone().position(|wave| wave.pods.contains(uid)) else {
            return Ok(());
        };
        let late = waves
            .clone()
            .take(place)
            .filter(|wave| !self.overdue.contains(&wave.name));
        // Whoever came to an earlier wave since.
        let goes_on = waves
            .clone()
            .nth(place)
            .is_some_and(|wave| self.before.waves.contains_key(&wave.name));
        let holds = |other: &&Uid| {
            let is_left = !self.stay.contains(*other) && !self.left_behind.contains(*other);
            there.get(*other).is_some() && is_left && !goes_on
        };
        if let Some(other) = late.flat_map(|wave| &wave.pods).find(holds) {
            return broken(
                7,
                format!("pod {uid} is evicted while {other} of an earlier wave is there"),
            );
        }
        self.asked.insert(uid.clone());
        if let Some(wave) = waves.clone().nth(place)
            && let Some(most) = wave.max_parallel
        {
            let leaving = wave
                .pods
                .iter()
                .filter(|other| self.asked.contains(*other) && there.contains_key(*other));
            let leaving = leaving.count();
            if leaving > usize::try_from(most).unwrap_or(usize::MAX) {
                return broken(
                    7,
                    format!("{leaving} pods of wave {} leave at once, not {most}", wave.name),
                );
            }
        }
        Ok(())
    }

    /// Before an eviction of a pod that came later and stood in its wave when that began: of the waves before it in its
    /// plan, the pods that were there first are gone, or these waves are overdue.
    fn late_pod_in_turn(&self, uid: &Uid, there: &BTreeMap<Uid, Pod>) -> Checked {
        let Some(wave) = self.wave_of(uid).filter(|wave| self.stood_in(&wave.name, uid)) else {
            return Ok(());
        };
        let waves = self.waves.get(uid).into_iter().flat_map(|waves| waves.iter());
        let before = waves
            .take_while(|other| other.name != wave.name)
            .filter(|other| !self.overdue.contains(&other.name));
        let holds = |other: &&Uid| {
            let leaves = self.verdicts.get(*other).is_some_and(|verdict| verdict.leaves());
            leaves
                && self.was_there_first(other)
                && there.contains_key(*other)
                && !self.left_behind.contains(*other)
        };
        let mut pods = before.flat_map(|other| &other.pods);
        match pods.find(holds).filter(|_| !self.was_there_first(uid)) {
            Some(other) => broken(
                7,
                format!("pod {uid} came later and is evicted while {other} of an earlier wave is there"),
            ),
            None => Ok(()),
        }
    }

    /// A pod was refused: it is not evicted for the time being.
    pub(crate) fn refused(&mut self, uid: &Uid) {
        self.asked.remove(uid);
    }
}

fn is_meant(step: &HookStep, wave: &Wave) -> bool {
    match &step.subject {
        Subject::Wave(name) => wave.name == *name,
        Subject::Node | Subject::Pod(_) => true,
    }
}

/// The pod's controller, as a checkpoint names it.
fn controller(pod: &Pod) -> String {
    let name = pod.controller.as_ref().map_or(&pod.id.name, |owner| &owner.name);
    format!("{}/{name}", pod.id.namespace)
}

/// It has been terminating for longer than the settings wait for, in whole seconds.
fn is_left_behind(now: Time, pod: &Pod, settings: &Settings) -> bool {
    let timeout = whole_millis(settings.filters.skip_wait_for_delete_timeout);
    let at = pod.deletion.map(|deletion| deletion.at);
    timeout > 0 && at.is_some_and(|at| whole_millis(now.since(at)) >= timeout + 1000)
}

/// The way in which pods are evicted.
const fn way(settings: &Settings) -> Verdict {
    if settings.filters.disable_eviction {
        Verdict::Delete
    } else {
        Verdict::Evict
    }
}

/// By a pod's properties alone, whether `kubectl drain` could have come to this verdict.
fn kubectl_would(pod: &Pod, verdict: Verdict, settings: &Settings) -> Checked {
    if !verdict.leaves() {
        return Ok(());
    }
    let uid = &pod.id.uid;
    let way = way(settings);
    if verdict != way {
        return broken(
            1,
            format!("pod {uid}: kubectl's draft says {way:?}, not {verdict:?}"),
        );
    }
    if !settings.filters.pod_selector.matches(&pod.labels) {
        return broken(1, format!("the draft evicts {uid}, which is not selected"));
    }
    if settings.own_pod.as_ref().is_some_and(|own| own.uid == *uid) {
        return broken(2, format!("the draft evicts the driver's own pod {uid}"));
    }
    if pod.is_mirror() {
        return broken(1, format!("the draft evicts the mirror pod {uid}"));
    }
    if pod.is_finished() {
        return Ok(());
    }
    let missing = pod.controller.as_ref().is_some_and(|owner| owner.missing);
    if pod.is_daemon() && !missing {
        return broken(2, format!("the draft evicts the DaemonSet pod {uid}"));
    }
    if (pod.controller.is_none() || missing) && !settings.filters.force {
        return broken(
            1,
            format!("the draft evicts {uid}, which nothing brings back, without force"),
        );
    }
    if pod.empty_dir && !settings.filters.delete_emptydir_data {
        return broken(1, format!("the draft evicts {uid} and its emptyDir"));
    }
    let shortens =
        |seconds: u64| settings.grace_only_longer && pod.deletion.is_none() && seconds < pod.grace_seconds;
    if settings.grace_seconds.is_some_and(shortens) {
        return broken(1, format!("the draft shortens the grace period of {uid}"));
    }
    Ok(())
}
