//! What a recorded drain did, as its replay shows it: what each pod waited for and when, and what the drain as a whole
//! waited for.

mod path;

use std::collections::BTreeMap;
use std::mem::discriminant;

use scupper_engine::{Drain, Intent, Notice, Plan, PodRef, Reason, Time, Uid};

pub use path::Part;

use crate::read::Recording;
use crate::replay::{Difference, replay_watched};
use scupper_recorder::Turn;

/// A recorded drain.
#[derive(Clone, Debug)]
pub struct DrainHistory {
    /// When it began.
    pub started: Time,
    /// When it ended, or its recording.
    pub ended: Time,
    /// Its last plan.
    pub plan: Option<Plan>,
    /// The waves of this plan in which pods left.
    pub waves: Vec<WaveHistory>,
    /// Its pods by name: those that were to leave.
    pub pods: Vec<PodHistory>,
    /// What the drain waited for, from its begin to its end without a gap.
    pub path: Vec<Part>,
}

/// A wave of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveHistory {
    /// Its place in the plan, from 1.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// How many pods were to leave in it.
    pub pods: usize,
    /// When it began; `None`: never, or before an earlier process ended.
    pub begun: Option<Time>,
    /// When the last of its pods was gone; `None`: some were still there at the end.
    pub gone: Option<Time>,
}

/// A pod that was to leave.
#[derive(Clone, Debug)]
pub struct PodHistory {
    /// The pod.
    pub pod: PodRef,
    /// Its controller, such as `ReplicaSet shop/web`.
    pub owner: Option<String>,
    /// The place of its wave in the plan, from 1.
    pub wave: Option<usize>,
    /// What it waited for, in order and without gaps, from when it was seen.
    pub waits: Vec<Wait>,
    /// When it was gone; `None`: it was still there at the end.
    pub gone: Option<Time>,
}

/// A time in which a pod waited for one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// From when on.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// Why, as it was at first.
    pub reason: Reason,
}

impl DrainHistory {
    /// Tells it by a replay. An uncordon has no pods.
    pub fn of(recording: &Recording) -> Result<Self, Box<Difference>> {
        let mut observer = HistoryObserver::default();
        replay_watched(recording, |at, drain| {
            while let Some(notice) = drain.poll_notice() {
                observer.notice(at, &notice);
            }
            observer.look(at, drain);
        })?;
        let started = recording.header.at;
        let last = || recording.turns.iter().rev().find_map(Turn::last);
        let ended = recording.end.as_ref().map(|end| end.at).or_else(last);
        let ended = ended.unwrap_or(started);
        Ok(observer.history(started, ended, recording.header.request.intent))
    }
}

/// Looks at an engine whenever something has happened, and tells what its drain did.
#[derive(Debug, Default)]
pub struct HistoryObserver {
    pods: BTreeMap<Uid, PodHistory>,
    plan: Option<Plan>,
    /// When a wave of this name began first.
    begun: BTreeMap<String, Time>,
}

impl HistoryObserver {
    /// The engine tells this.
    pub fn notice(&mut self, at: Time, notice: &Notice) {
        match notice {
            Notice::Planned(plan) => self.plan = Some(plan.clone()),
            Notice::WaveStarted { name, .. } if !self.begun.contains_key(name) => {
                self.begun.insert(name.clone(), at);
            }
            _ => {}
        }
    }

    /// What its pods wait for from now on.
    pub fn look(&mut self, at: Time, drain: &Drain) {
        let mut waiting: BTreeMap<Uid, (PodRef, Reason)> = drain
            .waiting()
            .into_iter()
            .filter(|(_, reason)| !reason.stays())
            .map(|(pod, reason)| (pod.uid.clone(), (pod, reason)))
            .collect();
        for history in self.pods.values_mut().filter(|history| history.gone.is_none()) {
            match waiting.remove(&history.pod.uid) {
                Some((_, reason)) => history.waits_for(at, reason),
                None => history.is_gone(at),
            }
        }
        for (uid, (pod, reason)) in waiting {
            let owner = drain.pods().find(|known| known.id.uid == uid);
            let owner = owner.and_then(|pod| pod.controller.as_ref());
            let wait = Wait {
                from: at,
                to: at,
                reason,
            };
            let owner = owner.map(|owner| format!("{} {}/{}", owner.kind, pod.namespace, owner.name));
            let history = PodHistory {
                pod,
                owner,
                wave: None,
                waits: vec![wait],
                gone: None,
            };
            self.pods.insert(uid, history);
        }
    }

    /// The waves of the last plan that have some of these pods.
    fn waves(&self, pods: &[PodHistory]) -> Vec<WaveHistory> {
        let waves = self.plan.iter().flat_map(|plan| &plan.waves).enumerate();
        let waves = waves.map(|(place, wave)| {
            let number = place + 1;
            let of_wave = pods.iter().filter(|pod| pod.wave == Some(number));
            let gone: Option<Vec<Time>> = of_wave.clone().map(|pod| pod.gone).collect();
            WaveHistory {
                number,
                name: wave.name.clone(),
                pods: of_wave.count(),
                begun: self.begun.get(&wave.name).copied(),
                gone: gone.and_then(|gone| gone.into_iter().max()),
            }
        });
        waves.filter(|wave| wave.pods > 0).collect()
    }

    /// What it did, once nothing more is looked at. An uncordon has no path.
    pub fn history(mut self, started: Time, ended: Time, intent: Intent) -> DrainHistory {
        let pods = self.pods(ended);
        let mut history = DrainHistory {
            started,
            ended,
            waves: self.waves(&pods),
            pods,
            plan: self.plan,
            path: Vec::new(),
        };
        if intent == Intent::Drain {
            history.path = path::of(&history);
        }
        history
    }

    /// Those that were to leave, with their waves.
    fn pods(&mut self, ended: Time) -> Vec<PodHistory> {
        let mut pods: Vec<_> = std::mem::take(&mut self.pods).into_values().collect();
        let waves = self.plan.iter().flat_map(|plan| &plan.waves).enumerate();
        let waves: BTreeMap<&Uid, usize> = waves
            .flat_map(|(number, wave)| wave.pods.iter().map(move |pod| (pod, number + 1)))
            .collect();
        for history in &mut pods {
            history.wave = waves.get(&history.pod.uid).copied();
            if history.gone.is_none() {
                history.until(ended);
            }
        }
        // Kept pods have a reason from the plan on; before it, every pod has.
        let leaves = |history: &PodHistory| history.wave.is_some() || self.plan.is_none();
        pods.retain(leaves);
        pods.sort_by_cached_key(|history| (history.wave, history.pod.to_string()));
        pods
    }
}

impl PodHistory {
    fn until(&mut self, at: Time) {
        if let Some(last) = self.waits.last_mut() {
            last.to = at;
        }
    }

    fn waits_for(&mut self, at: Time, reason: Reason) {
        self.until(at);
        if self
            .waits
            .last()
            .is_none_or(|last| !is_same(&last.reason, &reason))
        {
            self.waits.push(Wait {
                from: at,
                to: at,
                reason,
            });
        }
    }

    fn is_gone(&mut self, at: Time) {
        self.until(at);
        self.waits.retain(|wait| wait.from < wait.to);
        self.gone = Some(at);
    }
}

/// Whether both are about the same hook, budget or wave, if they are about one.
fn is_same(one: &Reason, other: &Reason) -> bool {
    match (one, other) {
        (Reason::HookRunning { .. }, _) | (Reason::WaveNotStarted { .. }, _) => one == other,
        (Reason::BudgetExhausted { budget: one, .. }, Reason::BudgetExhausted { budget: other, .. }) => {
            one == other
        }
        _ => discriminant(one) == discriminant(other),
    }
}
