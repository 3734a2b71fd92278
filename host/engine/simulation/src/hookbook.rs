//! Records which hook steps were taken and answered, across crashes.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{Checkpoint, HookPhase, HookStep, StepOutcome, Subject, Uid};

use crate::plans::Plans;
use crate::policies::HookId;
use crate::violation::{Checked, broken};

/// The latest time at which a hook may be called again after it asked for it: the host's bound and some delay.
const LATEST: u64 = 600_000;

#[derive(Debug, Default)]
pub(crate) struct HookBook {
    /// How often a step with this state was taken and how often it failed, in the whole episode.
    taken: BTreeMap<(HookId, Vec<u8>), (u32, u32)>,
    /// How often hooks have failed.
    pub(crate) failed: BTreeMap<HookId, u8>,
    /// Completed, as far as the running process knows.
    done: BTreeSet<HookId>,
    /// Completed according to an earlier process's checkpoint.
    recalled: BTreeSet<HookId>,
    /// The oldest state that a hook may receive after an earlier process's checkpoint.
    saved: BTreeMap<HookId, Vec<u8>>,
    /// Not completed, and when it last answered.
    waiting: BTreeMap<HookId, u64>,
    in_flight: BTreeSet<HookId>,
    /// The pods that its steps were given by which it finished.
    covered: BTreeMap<HookId, BTreeSet<Uid>>,
    /// Completed, and called again for pods that came later.
    again: BTreeSet<HookId>,
}

fn id(step: &HookStep) -> HookId {
    (step.policy.clone(), step.phase, step.subject.clone())
}

impl HookBook {
    /// Another process starts.
    pub(crate) fn restart(&mut self, checkpoint: Option<&Checkpoint>) {
        self.done.clear();
        self.waiting.clear();
        self.in_flight.clear();
        self.covered.clear();
        self.again.clear();
        let done = checkpoint.into_iter().flat_map(|checkpoint| &checkpoint.done);
        self.recalled = done.cloned().collect();
        let open = checkpoint.into_iter().flat_map(|checkpoint| &checkpoint.hooks);
        self.saved = open
            .map(|hook| {
                (
                    (hook.policy.clone(), hook.phase, hook.subject.clone()),
                    hook.state.clone(),
                )
            })
            .collect();
    }

    /// The engine requests a step.
    pub(crate) fn ask(&mut self, step: &HookStep, crashes: u32, plans: &Plans) -> Checked {
        let id = id(step);
        self.call_again(&id, plans);
        if self.recalled.contains(&id) && !self.again.contains(&id) {
            return broken(
                8,
                format!("{id:?} was saved as done and is called again after the restart"),
            );
        }
        if self.done.contains(&id) {
            return broken(8, format!("{id:?} is done and called again"));
        }
        if !self.in_flight.insert(id.clone()) {
            return broken(8, format!("{id:?} is called while its last step runs"));
        }
        if let Some(saved) = self.saved.get(&id)
            && step.state < *saved
        {
            return broken(8, format!("{id:?} is called with an older state than was saved"));
        }
        self.waiting.remove(&id);
        let (taken, failed) = self.taken.entry((id.clone(), step.state.clone())).or_default();
        *taken += 1;
        if *taken > 1 + *failed + crashes {
            return broken(
                8,
                format!("a step of {id:?} was taken {taken} times with {crashes} crashes"),
            );
        }
        Ok(())
    }

    /// A policy has taken a step, whether the answer arrives or not.
    pub(crate) fn executed(&mut self, step: &HookStep, outcome: &StepOutcome) {
        if let StepOutcome::Failed { .. } = outcome {
            let id = id(step);
            let failed = self.failed.entry(id.clone()).or_default();
            *failed = failed.saturating_add(1);
            self.taken.entry((id, step.state.clone())).or_default().1 += 1;
        }
    }

    /// An answer arrives.
    pub(crate) fn answered(&mut self, now: u64, step: &HookStep, outcome: &StepOutcome) {
        let id = id(step);
        self.in_flight.remove(&id);
        match outcome {
            StepOutcome::Done => {
                let covered = self.covered.entry(id.clone()).or_default();
                covered.extend(step.leaving.iter().cloned());
                self.again.remove(&id);
                self.done.insert(id);
            }
            StepOutcome::Pending { state, .. } if state.len() > 1024 => {}
            StepOutcome::Failed {
                retry_after: None, ..
            } => {}
            _ => {
                self.waiting.insert(id, now);
            }
        }
    }

    /// The process knows that this hook has finished.
    pub(crate) fn is_done(&self, policy: &str, phase: HookPhase, subject: &Subject) -> bool {
        let id = (String::from(policy), phase, subject.clone());
        self.done.contains(&id) || self.recalled.contains(&id)
    }

    /// The hook of a wave that has finished is called again if a pod has joined the wave for which it was not called.
    fn call_again(&mut self, id: &HookId, plans: &Plans) {
        let (policy, HookPhase::BeforeWave, Subject::Wave(wave)) = id else {
            return;
        };
        let mut joined = plans.waves.keys().filter(|uid| {
            let chosen = plans.wave_of(uid);
            chosen.is_some_and(|chosen| chosen.name == *wave)
        });
        let is_done = self.done.contains(id) || self.recalled.contains(id);
        if is_done && joined.any(|uid| !self.is_done_for(policy, wave, uid, plans)) {
            self.done.remove(id);
            self.again.insert(id.clone());
            self.saved.remove(id);
            self.taken.retain(|(of, _), _| of != id);
        }
    }

    /// The hook of the wave has finished for this pod: in this process, or in an earlier one that had decided on the pod
    /// when it saved that, or had begun the wave for it.
    pub(crate) fn is_done_for(&self, policy: &str, wave: &str, uid: &Uid, plans: &Plans) -> bool {
        let id = (
            String::from(policy),
            HookPhase::BeforeWave,
            Subject::Wave(String::from(wave)),
        );
        let is_covered = self.covered.get(&id).is_some_and(|pods| pods.contains(uid));
        let was_covered = self.recalled.contains(&id) && plans.was_there_first(uid);
        is_covered || was_covered || plans.went_on(wave, uid)
    }

    /// The hook had finished before this step.
    pub(crate) fn is_again(&self, step: &HookStep) -> bool {
        let id = id(step);
        self.again.contains(&id) || self.done.contains(&id)
    }

    /// Hooks that have waited for their next step longer than the host promises.
    pub(crate) fn overdue(&self, now: u64) -> Option<&HookId> {
        // Others lose their trigger when pods go or arrive: a wave becomes empty, or a drain has not ended.
        let steady = |id: &HookId| match id {
            (_, _, Subject::Wave(_)) | (_, HookPhase::AfterDrain | HookPhase::OnCancel, _) => false,
            (_, _, Subject::Node | Subject::Pod(_)) => true,
        };
        let late = self
            .waiting
            .iter()
            .find(|(id, since)| now > **since + LATEST && steady(id));
        late.map(|(id, _)| id)
    }

    /// A pod is gone: its hooks no longer matter.
    pub(crate) fn forget(&mut self, gone: impl Fn(&Subject) -> bool) {
        self.waiting.retain(|(_, _, subject), _| !gone(subject));
    }
}
