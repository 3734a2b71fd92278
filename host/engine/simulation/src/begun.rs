//! What a drain has begun is saved, and the next process goes on with it: with its waves, and with the times of its cordon
//! and of its evictions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{
    Answer, Begun, Checkpoint, CommandId, Drain, Phase, Plan, PodRef, Reason, Request, Task, Time, Uid,
    Verdict,
};

use crate::invariants::Invariants;
use crate::violation::{Checked, broken};

/// Schedulers have seen the cordon by then.
const SEEN_BY_SCHEDULERS: Duration = Duration::from_secs(30);
/// How late a timer may be, and some more.
const LATENESS: Duration = Duration::from_secs(5);
/// The host's own draft.
const HOST: &str = "kubectl";

#[derive(Debug, Default)]
pub(crate) struct BegunRecord {
    /// Since when the node has been cordoned, as far as the processes have seen.
    cordon: Option<Time>,
    /// Newcomers that were made when that was known to schedulers.
    came_late: BTreeSet<Uid>,
    /// The last checkpoint says since when pods are evicted.
    says_evictions: bool,
    /// It is written.
    is_written: bool,
}

impl BegunRecord {
    /// Another process starts.
    pub(crate) fn resumed(now: Time, checkpoint: Option<&Checkpoint>) -> Self {
        let cordon = checkpoint.and_then(|mark| mark.begun.cordon);
        Self {
            cordon: cordon.map(|since| since.min(now)),
            ..Self::default()
        }
    }

    /// A write was answered.
    pub(crate) fn answered(&mut self, task: &Task, answer: &Answer) {
        if let (Task::Cordon { .. } | Task::Save { .. }, Answer::Written { .. }) = (task, answer) {
            self.is_written = true;
        }
    }
}

impl Invariants {
    /// The node was seen without a cordon.
    pub(crate) fn sees_no_cordon(&mut self) {
        if self.knowledge.heard_node && !self.knowledge.is_cordoned() {
            self.begun.cordon = None;
        }
    }

    /// The process has looked at what it was told.
    pub(crate) fn sees_cordon(&mut self) {
        if self.knowledge.is_cordoned() {
            self.begun.cordon.get_or_insert(self.process_now);
        }
    }

    /// A pod came that no plan names.
    pub(crate) fn sees_newcomer(&mut self, pod: &PodRef) -> Checked {
        let known = self.knowledge.there.get(&pod.uid);
        let seen = self.begun.cordon.map(|since| since + SEEN_BY_SCHEDULERS);
        let is_late = known.zip(seen).is_some_and(|(pod, seen)| pod.created >= seen);
        if is_late && seen.is_some_and(|seen| self.process_now >= seen) {
            self.begun.came_late.insert(pod.uid.clone());
        }
        Ok(())
    }

    /// Invariant 8: no drain waits for a pod that was put onto the node long after the cordon and may not be evicted, also if
    /// another process had cordoned the node.
    pub(crate) fn waits_for_no_late_pod(&self, plan: &Plan) -> Checked {
        let mut refused = plan
            .decisions
            .iter()
            .filter(|decision| decision.verdict == Verdict::Refuse && decision.policy == HOST);
        match refused.find(|decision| self.begun.came_late.contains(&decision.pod)) {
            Some(decision) => broken(
                8,
                format!("waits for {}, which came long after the cordon", decision.pod),
            ),
            None => Ok(()),
        }
    }

    /// Invariant 8: a checkpoint says what has begun.
    pub(crate) fn saves_what_has_begun(&mut self, task: &Task, request: &Request) -> Checked {
        let (Task::Cordon { checkpoint, .. } | Task::Save { checkpoint, .. }) = task else {
            return Ok(());
        };
        self.plans.saves_the_newest(checkpoint, &self.knowledge.there)?;
        self.begun.is_written = false;
        self.begun.says_evictions = checkpoint.begun.evictions.is_some();
        if !checkpoint.phase.needs_cordon() {
            return Ok(());
        }
        let makes = matches!(task, Task::Cordon { .. }).then_some(self.process_now);
        let expected = (self.begun.cordon.or(makes), self.forced.evicts_since());
        let said = (checkpoint.begun.cordon, checkpoint.begun.evictions);
        if said != expected {
            return broken(
                8,
                format!("saves {said:?} as the times of cordon and evictions, not {expected:?}"),
            );
        }
        self.saves_begun_waves(&checkpoint.begun, request)
    }

    fn saves_begun_waves(&self, begun: &Begun, request: &Request) -> Checked {
        let there = &self.knowledge.there;
        for wave in self.plans.waves_now() {
            let name = &wave.name;
            let mut leaving = wave.pods.iter().filter(|uid| self.plans.leaves(uid, there));
            let is_saved = begun.waves.contains_key(name);
            let is_open = self.plans.has_begun(name) && leaving.clone().next().is_some();
            if is_open != is_saved {
                return broken(8, format!("wave {name} has begun: {is_open}; saved: {is_saved}"));
            }
            if !self.plans.begun.contains_key(name) {
                continue;
            }
            let is_wrong = |uid: &&Uid| match begun.late.contains(*uid) {
                true => self.plans.stood_in(name, uid),
                false => !self.plans.stood_in(name, uid) && self.waits_for_wave(name, uid, request),
            };
            if let Some(uid) = leaving.find(is_wrong) {
                return broken(8, format!("saves late pods of {name} without {uid}, or with it"));
            }
        }
        Ok(())
    }

    /// A hook of the wave has not finished for this pod.
    fn waits_for_wave(&self, wave: &str, uid: &Uid, request: &Request) -> bool {
        let mut policies = request.policies.iter();
        policies.any(|policy| {
            let has_hook = policy.phases.contains(&scupper_engine::HookPhase::BeforeWave);
            has_hook && !self.hooks.is_done_for(&policy.name, wave, uid, &self.plans)
        })
    }

    /// Invariant 8: waves that an earlier process had begun go on, and have no more time than they had.
    pub(crate) fn goes_on(&self, drain: &Drain, waiting: &[(PodRef, Reason)]) -> Checked {
        if drain.phase() != Phase::Evicting || self.decided.is_some() {
            return Ok(());
        }
        let there = &self.knowledge.there;
        let is_held = |(pod, reason): &&(PodRef, Reason)| {
            let wave = self.plans.wave_of(&pod.uid);
            let is_begun = wave.is_some_and(|wave| self.plans.went_on(&wave.name, &pod.uid));
            is_begun && matches!(reason, Reason::WaveNotStarted { .. }) && there.contains_key(&pod.uid)
        };
        let own = drain.request().settings.own_pod.as_ref();
        let mut held = waiting.iter().filter(is_held);
        if let Some((pod, _)) = held.find(|(pod, _)| Some(pod) != own) {
            return broken(8, format!("pod {} waits for a wave that had begun", pod.uid));
        }
        let mut waves = self.plans.waves_now().iter();
        let first = waves.find(|wave| wave.pods.iter().any(|uid| self.plans.leaves(uid, there)));
        match first.filter(|wave| self.plans.should_be_over(&wave.name, self.process_now, LATENESS)) {
            Some(wave) => broken(8, format!("wave {} has more time than it had", wave.name)),
            None => Ok(()),
        }
    }

    /// Invariant 8: where pods are to be forced before the deadline, the node says since when they have been asked.
    pub(crate) fn has_saved_its_evictions(
        &self,
        drain: &Drain,
        request: &Request,
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        let must_say = request.settings.at_deadline.is_some() && drain.phase() == Phase::Evicting;
        let writes = || outstanding.values().any(|task| task.written_node().is_some());
        let is_silent = self.begun.is_written && !self.begun.says_evictions;
        if must_say && is_silent && self.decided.is_none() && !writes() {
            return broken(8, "evicts, and no checkpoint says since when");
        }
        Ok(())
    }
}
