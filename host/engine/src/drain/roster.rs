//! Who is to leave and who stays: the agreed plan, and how far each leaving pod has come.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use crate::{Notice, Plan, Pod, PodRef, Reason, Time, Uid, Verdict, Wave};

/// What the agreed plan says of a pod.
#[derive(Debug)]
pub(super) enum Standing {
    /// It stays.
    Keeps,
    /// It came to the cordoned node and stays, for this reason: nothing waits for it.
    Stays(Reason),
    /// It may not leave, and the drain cannot be done while it is there.
    Refused,
    /// It is to leave.
    Leaves(Box<Target>),
}

/// A pod that is to leave.
#[derive(Debug)]
pub(super) struct Target {
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
    Watched(Watched),
}

/// Why nothing is left but to wait for the watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    pub(super) why: Why,
    pub(super) since: Time,
    /// When a list is wanted, should the watch be silent.
    pub(super) list_at: Time,
    /// How often a list has still shown it.
    pub(super) lists: u32,
}

/// What the API server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is ending.
    Accepted,
    /// There is no such pod.
    NotFound,
    /// There is another pod of that name.
    Disproved,
    /// Its namespace is being deleted.
    Namespace,
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
pub(super) struct Roster {
    pub(super) plan: Plan,
    pub(super) standings: BTreeMap<Uid, Standing>,
    pub(super) waves: Vec<WaveRun>,
    /// Controllers of pods that we have evicted since one of theirs came back.
    pub(super) departed: BTreeSet<String>,
}

impl Target {
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

impl Watched {
    /// The pod is as the API server's answer lets expect, and may be so for long.
    pub(super) const fn expects(&self, pod: &Pod) -> bool {
        matches!(self.why, Why::Accepted | Why::Namespace) && pod.deletion.is_some()
    }
}

impl Roster {
    pub(super) fn target(&self, uid: &Uid) -> Option<&Target> {
        match self.standings.get(uid) {
            Some(Standing::Leaves(target)) => Some(target),
            _ => None,
        }
    }

    pub(super) fn target_mut(&mut self, uid: &Uid) -> Option<&mut Target> {
        match self.standings.get_mut(uid) {
            Some(Standing::Leaves(target)) => Some(target),
            _ => None,
        }
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = (&Uid, &Target)> {
        self.standings
            .iter()
            .filter_map(|(uid, standing)| match standing {
                Standing::Leaves(target) => Some((uid, &**target)),
                _ => None,
            })
    }

    pub(super) fn targets_mut(&mut self) -> impl Iterator<Item = (&Uid, &mut Target)> {
        self.standings
            .iter_mut()
            .filter_map(|(uid, standing)| match standing {
                Standing::Leaves(target) => Some((uid, &mut **target)),
                _ => None,
            })
    }

    /// Pods that are to leave and are there.
    pub(super) fn leaving(&self) -> u32 {
        u32::try_from(self.targets().count()).unwrap_or(u32::MAX)
    }

    /// Nothing waits for it.
    pub(super) fn stays(&self, uid: &Uid) -> bool {
        let standing = self.standings.get(uid);
        matches!(standing, Some(Standing::Keeps | Standing::Stays(_)))
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
        self.world.pods().keys().all(|uid| self.roster.stays(uid))
    }

    /// Every pod that is there and must be gone before the drain is done.
    pub(super) fn remaining(&self) -> Vec<PodRef> {
        let pods = self.world.pods().values();
        let left = pods.filter(|pod| match self.roster.standings.get(&pod.id.uid) {
            Some(Standing::Keeps | Standing::Stays(_)) => false,
            Some(Standing::Refused | Standing::Leaves(_)) => true,
            None => !pod.is_mirror() && !pod.is_daemon(),
        });
        left.map(|pod| pod.id.clone()).collect()
    }

    /// Strikes pods that are gone off the roster.
    pub(super) fn see_off(&mut self) {
        let there = self.world.pods();
        let gone: Vec<Uid> = self
            .roster
            .standings
            .keys()
            .filter(|uid| !there.contains_key(*uid))
            .cloned()
            .collect();
        self.newcomers.forget_all_but(there);
        for uid in gone {
            self.forget_hooks_of(&uid);
            self.memory.stays.remove(&uid);
            let Some(Standing::Leaves(target)) = self.roster.standings.remove(&uid) else {
                continue;
            };
            if target.evicted {
                self.roster.departed.insert(target.owner);
            }
            self.summary.gone += 1;
            let remaining = self.roster.leaving();
            self.outbox.tell(Notice::PodGone {
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
