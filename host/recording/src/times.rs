//! How long things took in a recorded drain: pods to end, replacements to be ready, hooks to finish.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::time::Duration;

use scupper_engine::{
    Answer, Budget, Command, Event, EvictAnswer, HookPhase, Outcome, Pod, StepOutcome, Subject, Task, Time,
    Uid,
};

use crate::policy_answers::is_over;
use crate::read::{ReadError, Recording};
use scupper_recorder::{End, Header, Turn};

/// The namespace and the name of a budget.
type BudgetName = (String, String);
type HookName = (String, HookPhase, Subject);

/// What a drain saw from beginning to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedTimes {
    /// Pods, and the time from the first request that they leave until they were gone.
    pub endings: Vec<(Pod, Duration)>,
    /// Pods that would have taken longer than this: they had not ended when the recording did, or a grace period shorter
    /// than their own ended them.
    pub cut_endings: Vec<(Pod, Duration)>,
    /// Budgets, by namespace and name, and the time until one more pod was healthy: from the request that a pod leave, and of
    /// a StatefulSet's from its end, because only then another one begins.
    pub replacements: Vec<(BudgetName, Duration)>,
    /// Budgets whose replacements took longer than this: none was healthy when the recording ended.
    pub cut_replacements: Vec<(BudgetName, Duration)>,
    /// Hooks, and the time from their first step until they had finished.
    pub hooks: Vec<(String, HookPhase, Duration)>,
    /// Hooks that took longer than this: they had not finished when the recording ended, or had begun before it did.
    pub cut_hooks: Vec<(String, HookPhase, Duration)>,
    /// Of a drain without hooks: the time before it asked the first pod to leave, and after the last one was gone. `None`: it
    /// had hooks or did not end well.
    pub overhead: Option<Duration>,
}

impl ObservedTimes {
    /// Reads them off.
    pub fn of(recording: &Recording) -> Self {
        let mut watch = Watch::default();
        recording
            .turns
            .iter()
            .for_each(|turn| watch.turn(&recording.header, turn));
        watch.times(&recording.header, recording.end.as_ref())
    }

    /// Reads them off a file, which need not fit into memory.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let mut watch = Watch::default();
        let (header, end) = Recording::look_at_turns(path, |header, turn| watch.turn(header, turn))?;
        Ok(watch.times(&header, end.as_ref()))
    }
}

#[derive(Default)]
struct Watch {
    /// The time of the last input.
    now: Option<Time>,
    pods: BTreeMap<Uid, Pod>,
    budgets: BTreeMap<BudgetName, Budget>,
    /// Evictions and deletions without an answer, by command, and when they were commanded: what a request takes is part of
    /// what follows from it.
    requests: BTreeMap<u64, (Uid, Time)>,
    /// When each pod was first asked to leave; `None`: before the drain saw it.
    asked: BTreeMap<Uid, Option<Time>>,
    /// Pods whose grace period was shortened when it ran.
    shortened: BTreeSet<Uid>,
    /// Pods that are replaced when they are gone.
    replaced_later: BTreeSet<Uid>,
    /// When the first pod was asked to leave, and when the last one was gone.
    removing: Option<Time>,
    last_gone: Option<Time>,
    has_hooks: bool,
    /// From when on the replacement of a pod of each budget was to be expected that is not there yet.
    missing: BTreeMap<BudgetName, VecDeque<Time>>,
    /// Steps without an answer.
    steps: BTreeMap<u64, HookName>,
    /// When hooks had their first step, and whether that was their very first.
    begun: BTreeMap<HookName, (Time, bool)>,
    times: ObservedTimes,
}

impl Watch {
    fn turn(&mut self, header: &Header, turn: &Turn) {
        turn.events().for_each(|(at, event)| self.event(at, event));
        self.now = turn.last().or(self.now);
        let now = self.now.unwrap_or(header.at);
        for command in &turn.commands {
            self.command(now, command);
        }
    }

    fn times(mut self, header: &Header, end: Option<&End>) -> ObservedTimes {
        self.times.overhead = self.overhead(header, end);
        self.end(self.now.unwrap_or(header.at));
        self.times
    }

    fn event(&mut self, now: Time, event: &Event) {
        match event {
            Event::Pods(pods) => {
                // Those that are not listed are gone, since an unknown time.
                let listed: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.id.uid).collect();
                self.pods.retain(|uid, _| listed.contains(uid));
                pods.iter().for_each(|pod| self.pod(now, pod));
            }
            Event::PodApplied(pod) => self.pod(now, pod),
            Event::PodDeleted(uid) => self.is_gone(now, uid),
            Event::Budgets(budgets) => budgets.iter().for_each(|budget| self.budget(now, budget)),
            Event::BudgetApplied(budget) => self.budget(now, budget),
            Event::Answer(id, Answer::Evict(answer)) => {
                let asked = self.requests.remove(&id.0);
                if let (Some((uid, commanded)), EvictAnswer::Accepted) = (asked, answer) {
                    self.leaves(commanded, &uid);
                }
            }
            Event::Answer(id, Answer::Step { outcome, .. }) => {
                let Some(hook) = self.steps.remove(&id.0) else {
                    return;
                };
                let begun = is_over(outcome).then(|| self.begun.remove(&hook)).flatten();
                // How long one takes that fails is no use to anybody.
                if let (Some((begun, is_first)), StepOutcome::Done) = (begun, outcome) {
                    let (policy, phase, _) = hook;
                    let hooks = match is_first {
                        true => &mut self.times.hooks,
                        false => &mut self.times.cut_hooks,
                    };
                    hooks.push((policy, phase, now.since(begun)));
                }
            }
            _ => {}
        }
    }

    fn command(&mut self, now: Time, command: &Command) {
        if let Some(pod) = command.task.removes() {
            self.requests.insert(command.id.0, (pod.uid.clone(), now));
            self.removing.get_or_insert(now);
        }
        if let Task::Step { step, .. } = &command.task {
            self.has_hooks = true;
            let hook = (step.policy.clone(), step.phase, step.subject.clone());
            let is_first = step.state.is_empty();
            self.begun.entry(hook.clone()).or_insert((now, is_first));
            self.steps.insert(command.id.0, hook);
        }
    }

    fn pod(&mut self, now: Time, pod: &Pod) {
        let before = self.pods.insert(pod.id.uid.clone(), pod.clone());
        match (&pod.deletion, before.map(|before| before.deletion)) {
            (None, _) => {}
            (Some(_), None) => _ = self.asked.entry(pod.id.uid.clone()).or_insert(None),
            // The kubelet has ended it and removes it; its grace period was the one before.
            (Some(now_due), Some(before @ Some(_))) if now_due.grace_seconds == 0 => {
                if let Some(pod) = self.pods.get_mut(&pod.id.uid) {
                    pod.deletion = before;
                }
            }
            (Some(now_due), Some(Some(before))) if now_due.at < before.at => {
                self.shortened.insert(pod.id.uid.clone());
            }
            (Some(_), Some(_)) => {
                // The watch may be faster than the answer.
                let own = self.requests.values().find(|(uid, _)| *uid == pod.id.uid);
                let commanded = own.map_or(now, |(_, commanded)| *commanded);
                self.leaves(commanded, &pod.id.uid);
            }
        }
    }

    fn leaves(&mut self, now: Time, uid: &Uid) {
        if self.asked.contains_key(uid) {
            return;
        }
        self.asked.insert(uid.clone(), Some(now));
        // As it is now: what has been ended is finished.
        let is_replaced = |pod: &&Pod| pod.controller.is_some() && !pod.is_finished();
        let Some(pod) = self.pods.get(uid).filter(is_replaced).cloned() else {
            return;
        };
        if waits_for_end(&pod) {
            self.replaced_later.insert(uid.clone());
        } else {
            self.is_missing(now, &pod);
        }
    }

    /// Its budgets lack it.
    fn is_missing(&mut self, now: Time, pod: &Pod) {
        for (name, budget) in &self.budgets {
            if budget.selects(pod) {
                self.missing.entry(name.clone()).or_default().push_back(now);
            }
        }
    }

    fn is_gone(&mut self, now: Time, uid: &Uid) {
        if let (Some(pod), Some(Some(asked))) = (self.pods.remove(uid), self.asked.get(uid)) {
            let took = now.since(*asked);
            let was_killed = pod.deletion.as_ref().is_some_and(|deletion| {
                deletion.grace_seconds < pod.grace_seconds
                    && took >= Duration::from_secs(deletion.grace_seconds)
            });
            let endings = match was_killed || self.shortened.contains(uid) {
                true => &mut self.times.cut_endings,
                false => &mut self.times.endings,
            };
            endings.push((pod.clone(), took));
            self.last_gone = Some(now);
            if self.replaced_later.remove(uid) {
                self.is_missing(now, &pod);
            }
        }
    }

    /// A pod that is healthy again is taken for the replacement of the one that was asked first.
    fn budget(&mut self, now: Time, budget: &Budget) {
        let name = (budget.namespace.clone(), budget.name.clone());
        let before = self.budgets.insert(name.clone(), budget.clone());
        let before = before.map_or(budget.current_healthy, |before| before.current_healthy);
        let more = usize::try_from(budget.current_healthy.saturating_sub(before)).unwrap_or(0);
        if let Some(missing) = self.missing.get_mut(&name) {
            let back = missing.drain(..more.min(missing.len()));
            let took = back.map(|since| (name.clone(), now.since(since)));
            self.times.replacements.extend(took);
        }
    }

    fn overhead(&self, header: &Header, end: Option<&End>) -> Option<Duration> {
        let end = end.filter(|end| end.outcome == Outcome::Drained.name())?;
        let (removing, last_gone) = (self.removing?, self.last_gone?);
        let overhead = removing.since(header.at) + end.at.since(last_gone);
        (!self.has_hooks && header.checkpoint.is_none()).then_some(overhead)
    }

    /// What had not ended by then.
    fn end(&mut self, now: Time) {
        for (uid, asked) in &self.asked {
            if let (Some(asked), Some(pod)) = (asked, self.pods.remove(uid)) {
                self.times.cut_endings.push((pod, now.since(*asked)));
            }
        }
        for (budget, missing) in std::mem::take(&mut self.missing) {
            let cut = missing
                .into_iter()
                .map(|since| (budget.clone(), now.since(since)));
            self.times.cut_replacements.extend(cut);
        }
        for ((policy, phase, _), (begun, _)) in std::mem::take(&mut self.begun) {
            self.times.cut_hooks.push((policy, phase, now.since(begun)));
        }
    }
}

/// Its controller begins another one only when it is gone.
pub fn waits_for_end(pod: &Pod) -> bool {
    let controller = pod.controller.as_ref();
    controller.is_some_and(|controller| controller.kind == "StatefulSet")
}

#[cfg(test)]
mod tests;
