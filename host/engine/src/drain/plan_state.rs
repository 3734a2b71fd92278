//! The agreed plan: which pods leave and which stay, and how far each has come.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Drain;
use super::eviction_target::EvictionTarget;
use super::wave_run::WaveRun;
use crate::filter::HOST_POLICY;
use crate::hook::is_of_host;
use crate::uid_map::UidMap;
use crate::{
    Decision, HookPhase, Notice, Plan, Pod, PodRef, Reason, Removal, Subject, SurgePlan, Uid, Verdict, Wave,
};

/// What the agreed plan says of a pod.
#[derive(Debug)]
pub(super) enum PodState {
    /// It stays.
    Keeps,
    /// It came to the cordoned node and stays, for this reason: nothing waits for it.
    Stays(Reason),
    /// It may not leave, for this reason, and the drain cannot be done while it is there.
    Refused(Reason),
    /// It is to leave.
    Leaves(Box<EvictionTarget>),
}

/// The agreed plan and how far it has come.
#[derive(Debug, Default)]
pub(super) struct PlanState {
    plan: Plan,
    pods: UidMap<PodState>,
    waves: Vec<WaveRun>,
    /// Controllers of pods that we have evicted since one of theirs came back.
    departed: BTreeSet<String>,
}

impl PlanState {
    /// As it was agreed, with the pods that came later.
    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn set_plan(&mut self, plan: Plan) {
        self.begin_waves(&plan.waves);
        self.plan = plan;
    }

    /// The policies that it follows, without those of the host, which its settings say.
    pub(super) fn planners(&self) -> BTreeSet<String> {
        let decisions = self.plan.decisions.iter().map(|decision| &decision.policy);
        let named = decisions.chain(self.plan.waves.iter().map(|wave| &wave.policy));
        let is_of_host = |name: &str| ["", HOST_POLICY].contains(&name) || is_of_host(name);
        let named: BTreeSet<&String> = named.filter(|name| !is_of_host(name)).collect();
        named.into_iter().cloned().collect()
    }

    /// What the plan says of a pod; `None`: no plan names it.
    pub(super) fn pod(&self, uid: &Uid) -> Option<&PodState> {
        self.pods.get(uid)
    }

    pub(super) fn pods(&self) -> impl Iterator<Item = (&Uid, &PodState)> {
        self.pods.iter()
    }

    /// Of the pods that are there, those that no plan names. Pods that are gone are named by none.
    pub(super) fn unplanned<'a>(&'a self, there: &'a UidMap<Arc<Pod>>) -> impl Iterator<Item = &'a Pod> {
        let all = (there.len() != self.pods.len()).then(|| there.values());
        let unplanned = all.into_iter().flatten().map(Arc::as_ref);
        unplanned.filter(|pod| !self.pods.contains_key(&pod.id.uid))
    }

    /// These pods, with what the plan says of each.
    pub(super) fn states_of<'a>(
        &'a self,
        there: &'a UidMap<Arc<Pod>>,
    ) -> impl Iterator<Item = (&'a Arc<Pod>, Option<&'a PodState>)> {
        there.beside(&self.pods)
    }

    /// The pods that are to leave, and those of these that are the same.
    pub(super) fn targets_with<'a>(
        &'a self,
        there: &'a UidMap<Arc<Pod>>,
    ) -> impl Iterator<Item = (&'a EvictionTarget, Option<&'a Pod>)> {
        let pods = self.pods.beside(there);
        pods.filter_map(|(pod_state, pod)| match pod_state {
            PodState::Leaves(target) => Some((&**target, pod.map(Arc::as_ref))),
            _ => None,
        })
    }

    pub(super) fn set_pod(&mut self, uid: Uid, pod_state: PodState) {
        self.pods.insert(uid, pod_state);
    }

    /// A pod that came later is decided on, or one again that might not leave.
    pub(super) fn admit(&mut self, uid: Uid, pod_state: PodState, decision: Decision) {
        if self.pods.contains_key(&uid) {
            self.plan.decisions.retain(|known| known.pod != uid);
        }
        self.plan.decisions.push(decision);
        self.plan.waves = self.waves.iter().map(|run| run.wave().clone()).collect();
        self.set_pod(uid, pod_state);
    }

    /// Deployments whose budgets were found closed later.
    pub(super) fn add_surges(&mut self, chosen: SurgePlan) {
        self.plan.surge.method = chosen.method;
        self.plan.surge.surges.extend(chosen.surges);
    }

    /// The pod was to leave, and is no longer waited for.
    pub(super) fn skip_pod(&mut self, uid: &Uid, reason: String) {
        self.set_pod(uid.clone(), PodState::Keeps);
        for run in &mut self.waves {
            run.remove(uid);
        }
        for wave in &mut self.plan.waves {
            wave.pods.retain(|other| other != uid);
        }
        let mut decisions = self.plan.decisions.iter_mut();
        if let Some(decision) = decisions.find(|decision| decision.pod == *uid) {
            decision.verdict = Verdict::Keep;
            decision.reason = reason;
            decision.policy = String::from(HOST_POLICY);
        }
    }

    pub(super) fn waves(&self) -> &[WaveRun] {
        &self.waves
    }

    pub(super) const fn waves_mut(&mut self) -> &mut Vec<WaveRun> {
        &mut self.waves
    }

    pub(super) fn wave_mut(&mut self, place: usize) -> Option<&mut WaveRun> {
        self.waves.get_mut(place)
    }

    /// Whether we have evicted pods of this controller since one of its pods came back; asking forgets it.
    pub(super) fn take_departed(&mut self, owner: &str) -> bool {
        self.departed.remove(owner)
    }

    pub(super) fn target(&self, uid: &Uid) -> Option<&EvictionTarget> {
        match self.pods.get(uid) {
            Some(PodState::Leaves(target)) => Some(target),
            _ => None,
        }
    }

    pub(super) fn target_mut(&mut self, uid: &Uid) -> Option<&mut EvictionTarget> {
        match self.pods.get_mut(uid) {
            Some(PodState::Leaves(target)) => Some(target),
            _ => None,
        }
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = (&Uid, &EvictionTarget)> {
        self.pods.iter().filter_map(|(uid, pod_state)| match pod_state {
            PodState::Leaves(target) => Some((uid, &**target)),
            _ => None,
        })
    }

    pub(super) fn targets_mut(&mut self) -> impl Iterator<Item = (&Uid, &mut EvictionTarget)> {
        self.pods
            .iter_mut()
            .filter_map(|(uid, pod_state)| match pod_state {
                PodState::Leaves(target) => Some((uid, &mut **target)),
                _ => None,
            })
    }

    /// Pods that are to leave and are there.
    pub(super) fn leaving(&self) -> u32 {
        u32::try_from(self.targets().count()).unwrap_or(u32::MAX)
    }

    /// Those of them that concern a hook, in the order of the plan. A wave has hooks for the pods for which it has not
    /// begun.
    pub(super) fn still_leaving(&self, phase: HookPhase, subject: &Subject) -> Vec<Uid> {
        let pods = self.plan.leaving_for(phase, subject);
        let is_meant = |uid: &Uid| {
            let begun = phase == HookPhase::BeforeWave && self.has_begun_for(uid);
            self.target(uid).is_some() && !begun
        };
        pods.filter(|uid| is_meant(uid)).cloned().collect()
    }

    /// Nothing waits for it.
    pub(super) fn stays(&self, uid: &Uid) -> bool {
        let pod_state = self.pods.get(uid);
        matches!(pod_state, Some(PodState::Keeps | PodState::Stays(_)))
    }

    /// The wave a pod stands in.
    pub(super) fn wave_of(&self, uid: &Uid) -> Option<&WaveRun> {
        self.wave_of_target(self.target(uid)?)
    }

    pub(super) fn wave_of_target(&self, target: &EvictionTarget) -> Option<&WaveRun> {
        let name = target.wave()?;
        self.waves.iter().find(|run| run.wave().name == *name)
    }

    /// The pod's wave has begun, and the hooks of that wave have run for it.
    pub(super) fn has_begun_for(&self, uid: &Uid) -> bool {
        self.wave_of(uid).is_some_and(|run| run.has_begun_for(uid))
    }

    /// Takes the waves of the agreed plan, and notes for each pod where it stands.
    fn begin_waves(&mut self, waves: &[Wave]) {
        for wave in waves {
            for uid in &wave.pods {
                if let Some(target) = self.target_mut(uid) {
                    target.join_wave(wave.name.clone());
                }
            }
            self.waves.push(WaveRun::new(wave.clone()));
        }
    }

    /// The pod is gone. If it was to leave: what became of its eviction.
    fn remove(&mut self, uid: &Uid) -> Option<EvictionTarget> {
        for run in &mut self.waves {
            run.pod_gone(uid);
        }
        match self.pods.remove(uid) {
            Some(PodState::Leaves(target)) => Some(*target),
            _ => None,
        }
    }
}

impl Drain {
    /// Nothing that is to leave is there, and nothing that has not been decided on.
    pub(super) fn is_node_empty(&self) -> bool {
        self.cluster.pods().keys().all(|uid| self.plan_state.stays(uid))
    }

    /// Every pod that is there and must be gone before the drain is done: those of earlier waves first.
    pub(super) fn remaining(&self) -> Vec<PodRef> {
        let pods = self.cluster.pods().values();
        let left = pods.filter(|pod| match self.plan_state.pod(&pod.id.uid) {
            Some(PodState::Keeps | PodState::Stays(_)) => false,
            Some(PodState::Refused(_) | PodState::Leaves(_)) => true,
            None => !pod.is_mirror() && !pod.is_daemon(),
        });
        let mut left: Vec<PodRef> = left.map(|pod| pod.id.clone()).collect();
        let waves = self.plan_state.waves();
        left.sort_by_cached_key(|pod| {
            waves
                .iter()
                .position(|run| run.contains(&pod.uid))
                .unwrap_or(waves.len())
        });
        left
    }

    /// Forgets pods that are gone, and reports those that were to leave.
    pub(super) fn prune_deleted(&mut self) {
        for uid in self.cluster.take_gone() {
            self.newcomers.forget(&uid);
            self.refused.forget(&uid);
            self.reported_reasons.forget(&uid);
            self.forget_hooks_of(&uid);
            self.checkpoint_state.forget_stay(&uid);
            let Some(mut target) = self.plan_state.remove(&uid) else {
                continue;
            };
            if let Some(forced) = target.report_forced_gone() {
                self.note_forced(target.pod().clone(), forced);
            }
            if target.sent() == Some(Removal::Delete) {
                self.outbox.totals_mut().deleted += 1;
            }
            self.outbox.notify(Notice::PodGone {
                pod: target.pod().clone(),
                remaining: self.plan_state.leaving(),
            });
            self.plan_state.departed.extend(target.evicted_from());
        }
    }
}

/// The namespace and controller under which returns are counted.
pub(super) fn owner_of(pod: &Pod) -> String {
    let name = pod.controller.as_ref().map_or(&pod.id.name, |owner| &owner.name);
    let mut key = pod.id.namespace.clone();
    key.push('/');
    key.push_str(name);
    key
}
