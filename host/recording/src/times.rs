//! How long things took in a recorded drain: pods to end, replacements to be ready, hooks to finish.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use scupper_engine::{
    Answer, Budget, Command, Event, EvictAnswer, HookPhase, Pod, StepOutcome, Subject, Task, Time, Uid,
};

use crate::line::Input;
use crate::read::Recording;

/// The namespace and the name of a budget.
type BudgetName = (String, String);

/// What a drain saw from beginning to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedTimes {
    /// Pods, and the time from the first request that they leave until they were gone.
    pub endings: Vec<(Pod, Duration)>,
    /// Budgets, by namespace and name, and the time from the end of a pod until they allowed one more eviction.
    pub replacements: Vec<(BudgetName, Duration)>,
    /// Hooks, and the time from their first step until they had finished.
    pub hooks: Vec<(String, HookPhase, Duration)>,
}

impl ObservedTimes {
    /// Reads them off.
    pub fn of(recording: &Recording) -> Self {
        let mut watch = Watch::default();
        for turn in &recording.turns {
            let mut now = recording.header.at;
            for (at, input) in &turn.inputs {
                now = *at;
                if let Input::Event(event) = input {
                    watch.event(now, event);
                }
            }
            for command in &turn.commands {
                watch.command(now, command);
            }
        }
        watch.times
    }
}

#[derive(Default)]
struct Watch {
    pods: BTreeMap<Uid, Pod>,
    budgets: BTreeMap<BudgetName, Budget>,
    /// Evictions and deletions without an answer, by command.
    requests: BTreeMap<u64, Uid>,
    /// When each pod was first asked to leave; `None`: before the drain saw it.
    asked: BTreeMap<Uid, Option<Time>>,
    /// Pods of each budget that it has not got back, and when they were gone.
    missing: BTreeMap<BudgetName, VecDeque<(Uid, Option<Time>)>>,
    /// Steps without an answer.
    steps: BTreeMap<u64, (String, HookPhase, Subject)>,
    /// Hooks that have begun.
    begun: BTreeMap<(String, HookPhase, Subject), Time>,
    times: ObservedTimes,
}

impl Watch {
    fn event(&mut self, now: Time, event: &Event) {
        match event {
            Event::Pods(pods) => pods.iter().for_each(|pod| self.pod(now, pod)),
            Event::PodApplied(pod) => self.pod(now, pod),
            Event::PodDeleted(uid) => self.is_gone(now, uid),
            Event::Budgets(budgets) => budgets.iter().for_each(|budget| self.budget(now, budget)),
            Event::BudgetApplied(budget) => self.budget(now, budget),
            Event::Answer(id, Answer::Evict(EvictAnswer::Accepted)) => {
                if let Some(uid) = self.requests.remove(&id.0) {
                    self.leaves(now, &uid);
                }
            }
            Event::Answer(id, Answer::Step { outcome, .. }) => {
                let hook = self.steps.remove(&id.0);
                if let (Some(hook), StepOutcome::Done) = (hook, outcome)
                    && let Some(begun) = self.begun.remove(&hook)
                {
                    let (policy, phase, _) = hook;
                    self.times.hooks.push((policy, phase, now.since(begun)));
                }
            }
            _ => {}
        }
    }

    fn command(&mut self, now: Time, command: &Command) {
        if let Some(pod) = command.task.removes() {
            self.requests.insert(command.id.0, pod.uid.clone());
        }
        if let Task::Step { step, .. } = &command.task {
            let hook = (step.policy.clone(), step.phase, step.subject.clone());
            self.begun.entry(hook.clone()).or_insert(now);
            self.steps.insert(command.id.0, hook);
        }
    }

    fn pod(&mut self, now: Time, pod: &Pod) {
        let before = self.pods.insert(pod.id.uid.clone(), pod.clone());
        match (&pod.deletion, before) {
            (None, _) => {}
            (Some(_), None) => _ = self.asked.entry(pod.id.uid.clone()).or_insert(None),
            (Some(_), Some(_)) => self.leaves(now, &pod.id.uid),
        }
    }

    fn leaves(&mut self, now: Time, uid: &Uid) {
        if self.asked.contains_key(uid) {
            return;
        }
        self.asked.insert(uid.clone(), Some(now));
        let Some(pod) = self.pods.get(uid) else { return };
        for (name, budget) in &self.budgets {
            if budget.selects(pod) {
                let missing = self.missing.entry(name.clone()).or_default();
                missing.push_back((uid.clone(), None));
            }
        }
    }

    fn is_gone(&mut self, now: Time, uid: &Uid) {
        for (missing, gone) in self.missing.values_mut().flatten() {
            if missing == uid {
                *gone = Some(now);
            }
        }
        if let (Some(pod), Some(Some(asked))) = (self.pods.remove(uid), self.asked.get(uid)) {
            self.times.endings.push((pod, now.since(*asked)));
        }
    }

    fn budget(&mut self, now: Time, budget: &Budget) {
        let name = (budget.namespace.clone(), budget.name.clone());
        let before = self.budgets.insert(name.clone(), budget.clone());
        if before.is_some_and(|before| before.disruptions_allowed < budget.disruptions_allowed)
            && let Some((_, gone)) = self.missing.get_mut(&name).and_then(VecDeque::pop_front)
        {
            let took = gone.map_or(Duration::ZERO, |gone| now.since(gone));
            self.times.replacements.push((name, took));
        }
    }
}
