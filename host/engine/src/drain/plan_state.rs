//! Who is to leave and who stays: the agreed plan, and how far each leaving pod has come.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use crate::{Notice, Plan, Pod, PodRef, Reason, Time, Uid, Verdict, Wave};

/// What the agreed plan says of a pod.
#[derive(Debug)]
pub(super) enum PodState {
    /// It stays.
    Keeps,
    /// It came to the cordoned node and stays, for this reason: nothing waits for it.
    Stays(Reason),
    /// It may not leave, and the drain cannot be done while it is there.
    Refused,
    /// It is to leave.
    Leaves(Box<EvictionTarget>),
}

/// A pod that is to leave.
#[derive(Debug)]
pub(super) struct EvictionTarget {
    pub(super) pod: PodRef,
    /// Its namespace and controller, under which returns are counted.
    pub(super) owner: String,
    pub(super) verdict: Verdict,
    /// The name of its wave.
    pub(super) wave: Option<String>,
    pub(super) state: State,
    /// Why the last ask did not work.
    pub(super) refusal: Option<Reason>,
    /// How often in a row it did not work for the same reason.
    pub(super) tries: u32,
    /// Not to be asked again before.
    pub(super) not_before: Time,
    /// Why it is not asked just now.
    pub(super) hold: Option<Reason>,
    /// Since when a budget has been holding it up.
    pub(super) budget_since: Option<Time>,
    /// Its eviction or deletion was sent, and no answer has denied it.
    pub(super) evicted: bool,
}

/// How far a leaving pod has come. That it is ending, and that it is gone, is read from the watch.
#[derive(Debug)]
pub(super) enum State {
    /// To be asked.
    Waiting,
    /// Asked, and not answered.
    Asked,
    /// Answered so that nothing is left but to wait for the watch.
    AwaitingDeletion(AwaitingDeletion),
}

/// Why nothing is left but to wait for the watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitingDeletion {
    pub(super) answered: Answered,
    pub(super) since: Time,
    /// When a list is wanted, should the watch be silent.
    pub(super) list_at: Time,
    /// How often a list has still shown it.
    pub(super) lists: u32,
}

/// What the API server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It is ending.
    Accepted,
    /// There is no such pod.
    NotFound,
    /// There is another pod of that name.
    UidMismatch,
    /// Its namespace is being deleted.
    NamespaceTerminating,
}

/// A wave and how far it has come.
#[derive(Debug)]
pub(super) struct WaveRun {
    pub(super) wave: Wave,
    pub(super) started: Option<Time>,
    pub(super) ended: bool,
}

/// The agreed plan and how far it has come.
#[derive(Debug, Default)]
pub(super) struct PlanState {
    pub(super) plan: Plan,
    pub(super) pod_states: BTreeMap<Uid, PodState>,
    pub(super) waves: Vec<WaveRun>,
    /// Controllers of pods that we have evicted since one of theirs came back.
    pub(super) departed: BTreeSet<String>,
}

impl EvictionTarget {
    pub(super) fn new(pod: &Pod, verdict: Verdict) -> Self {
        Self {
            pod: pod.id.clone(),
            owner: owner_of(pod),
            verdict,
            wave: None,
            state: State::Waiting,
            refusal: None,
            tries: 0,
            not_before: Time::from_millis(0),
            hold: None,
            budget_since: None,
            evicted: false,
        }
    }
}

impl AwaitingDeletion {
    /// The pod is as the API server's answer lets expect, and may be so for long.
    pub(super) const fn expects(&self, pod: &Pod) -> bool {
        matches!(self.answered, Answered::Accepted | Answered::NamespaceTerminating) && pod.deletion.is_some()
    }
}

impl PlanState {
    pub(super) fn target(&self, uid: &Uid) -> Option<&EvictionTarget> {
        match self.pod_states.get(uid) {
            Some(PodState::Leaves(target)) => Some(target),
            _ => None,
        }
    }

    pub(super) fn target_mut(&mut self, uid: &Uid) -> Option<&mut EvictionTarget> {
        match self.pod_states.get_mut(uid) {
            Some(PodState::Leaves(target)) => Some(target),
            _ => None,
        }
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = (&Uid, &EvictionTarget)> {
        self.pod_states
            .iter()
            .filter_map(|(uid, pod_state)| match pod_state {
                PodState::Leaves(target) => Some((uid, &**target)),
                _ => None,
            })
    }

    pub(super) fn targets_mut(&mut self) -> impl Iterator<Item = (&Uid, &mut EvictionTarget)> {
        self.pod_states
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

    /// Nothing waits for it.
    pub(super) fn stays(&self, uid: &Uid) -> bool {
        let pod_state = self.pod_states.get(uid);
        matches!(pod_state, Some(PodState::Keeps | PodState::Stays(_)))
    }

    /// The wave a pod stands in.
    pub(super) fn wave_of(&self, uid: &Uid) -> Option<&WaveRun> {
        let name = self.target(uid)?.wave.as_ref()?;
        self.waves.iter().find(|run| run.wave.name == *name)
    }

    /// Takes the waves of the agreed plan, and tells each pod where it stands.
    pub(super) fn begin_waves(&mut self, waves: &[Wave]) {
        for wave in waves {
            for uid in &wave.pods {
                if let Some(target) = self.target_mut(uid) {
                    target.wave = Some(wave.name.clone());
                }
            }
            self.waves.push(WaveRun {
                wave: wave.clone(),
                started: None,
                ended: false,
            });
        }
    }

    /// Puts a pod that came later into the wave the planners chose for it, or the one that is under way, or the last.
    /// It never joins the driver's own pod, which goes last and alone: then it gets a wave before that. Returns the
    /// wave's name.
    pub(super) fn place(&mut self, uid: Uid, chosen: &Wave, own_pod: Option<&Uid>) -> String {
        let is_own = |run: &WaveRun| own_pod.is_some_and(|own| run.wave.pods.contains(own));
        let open = |run: &WaveRun| !run.ended && !is_own(run);
        let by_name = self
            .waves
            .iter()
            .position(|run| open(run) && run.wave.name == chosen.name);
        let current = || self.waves.iter().position(open);
        let last = || self.waves.iter().rposition(|run| !is_own(run));
        let place = by_name.or_else(current).or_else(last);
        if let Some(run) = place.and_then(|place| self.waves.get_mut(place)) {
            run.wave.pods.push(uid);
            run.ended = false;
            return run.wave.name.clone();
        }
        let wave = Wave {
            pods: Vec::from([uid]),
            ..chosen.clone()
        };
        let run = WaveRun {
            wave,
            started: None,
            ended: false,
        };
        self.waves.insert(0, run);
        chosen.name.clone()
    }
}

impl Drain {
    /// Nothing that is to leave is there, and nothing that has not been decided on.
    pub(super) fn is_node_empty(&self) -> bool {
        self.cluster.pods().keys().all(|uid| self.plan_state.stays(uid))
    }

    /// Every pod that is there and must be gone before the drain is done.
    pub(super) fn remaining(&self) -> Vec<PodRef> {
        let pods = self.cluster.pods().values();
        let left = pods.filter(|pod| match self.plan_state.pod_states.get(&pod.id.uid) {
            Some(PodState::Keeps | PodState::Stays(_)) => false,
            Some(PodState::Refused | PodState::Leaves(_)) => true,
            None => !pod.is_mirror() && !pod.is_daemon(),
        });
        left.map(|pod| pod.id.clone()).collect()
    }

    /// Strikes pods that are gone off the roster.
    pub(super) fn prune_deleted(&mut self) {
        let there = self.cluster.pods();
        let gone: Vec<Uid> = self
            .plan_state
            .pod_states
            .keys()
            .filter(|uid| !there.contains_key(*uid))
            .cloned()
            .collect();
        self.newcomers.forget_all_but(there);
        for uid in gone {
            self.forget_hooks_of(&uid);
            self.checkpoint_state.stays.remove(&uid);
            let Some(PodState::Leaves(target)) = self.plan_state.pod_states.remove(&uid) else {
                continue;
            };
            if target.evicted {
                self.plan_state.departed.insert(target.owner);
            }
            self.summary.gone += 1;
            let remaining = self.plan_state.leaving();
            self.outbox.notify(Notice::PodGone {
                pod: target.pod,
                remaining,
            });
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
