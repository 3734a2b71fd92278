//! The runner of hooks: one step at a time for each hook, its state saved before the next.
//!
//! The hooks of one phase and subject stand in a row, in chain order; [`Gate`] says whether all of them are through.
//! It must not know what a phase is for.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::outbox::Job;
use crate::{
    Duration, HookPhase, HookStep, Notice, Outcome, Reason, StepOutcome, Subject, Task, Time, Uid, WaitingOn,
};

/// A hook may ask to be called again this soon.
const SOONEST: Duration = Duration::from_millis(100);
/// A failed hook is tried again this soon.
const SOONEST_RETRY: Duration = Duration::from_secs(1);
/// A hook is called again at least this often.
const LATEST: Duration = Duration::from_secs(300);
/// The checkpoint is kept in an annotation, which is small.
const LARGEST_STATE: usize = 1024;

/// Tells a hook from every other one of a drain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HookKey {
    pub(super) phase: HookPhase,
    pub(super) subject: Subject,
    pub(super) policy: String,
}

/// A hook that has begun and is not through.
#[derive(Debug)]
pub(super) struct OpenHook {
    pub(super) state: Vec<u8>,
    pub(super) started: Time,
    /// When its next step may be taken.
    pub(super) due: Time,
    /// Its step has not been answered.
    in_flight: bool,
    /// The revision of its last change.
    revision: u64,
    /// What people were told last.
    told: Option<(String, Vec<WaitingOn>)>,
}

/// Whether the hooks of a phase and subject are through.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// All of them, and it is saved.
    Open,
    /// This policy's is not.
    Closed { policy: String },
}

/// The hooks that are under way.
pub(super) type OpenHooks = BTreeMap<HookKey, OpenHook>;

impl Gate {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

impl OpenHook {
    const fn begun(now: Time) -> Self {
        Self {
            state: Vec::new(),
            started: now,
            due: now,
            in_flight: false,
            revision: 0,
            told: None,
        }
    }

    pub(super) const fn resumed(state: Vec<u8>, started: Time, now: Time) -> Self {
        Self {
            state,
            started,
            due: now,
            in_flight: false,
            revision: 0,
            told: None,
        }
    }
}

impl Drain {
    /// Whether the hooks are through; takes the next step of the one whose turn it is.
    pub(super) fn gate(&mut self, phase: HookPhase, subject: &Subject) -> Gate {
        for policy in self.policies_with(phase) {
            let key = HookKey {
                phase,
                subject: subject.clone(),
                policy,
            };
            match self.memory.done.get(&key) {
                Some(revision) if self.memory.is_saved(*revision) => {}
                Some(_) => return Gate::Closed { policy: key.policy },
                None => {
                    let policy = key.policy.clone();
                    self.take_step(key);
                    return Gate::Closed { policy };
                }
            }
        }
        Gate::Open
    }

    pub(super) fn has_hooks(&self, phase: HookPhase) -> bool {
        self.request
            .policies
            .iter()
            .any(|policy| policy.phases.contains(&phase))
    }

    /// A hook of this pod has begun and is not through, or it is not saved yet that it is.
    pub(super) fn is_in_hook(&self, pod: &Uid) -> bool {
        if !self.has_hooks(HookPhase::BeforeEvict) {
            return false;
        }
        let subject = Subject::Pod(pod.clone());
        let first = HookKey {
            phase: HookPhase::BeforeEvict,
            subject,
            policy: String::new(),
        };
        let open = self
            .hooks
            .range(&first..)
            .next()
            .is_some_and(|(key, _)| key.subject == first.subject);
        let mut done = self
            .memory
            .done
            .range(&first..)
            .take_while(|(key, _)| key.subject == first.subject);
        open || done.any(|(_, revision)| !self.memory.is_saved(*revision))
    }

    /// Why something waits that waits for a hook of this phase.
    pub(super) fn hook_reason(&self, phase: HookPhase, subject: &Subject) -> Option<Reason> {
        let policies = self.policies_with(phase);
        let policy = policies.into_iter().find(|policy| {
            let key = HookKey {
                phase,
                subject: subject.clone(),
                policy: policy.clone(),
            };
            self.memory
                .done
                .get(&key)
                .is_none_or(|revision| !self.memory.is_saved(*revision))
        })?;
        Some(Reason::HookRunning { policy, phase })
    }

    /// A step was answered.
    pub(super) fn step_answered(&mut self, key: HookKey, outcome: StepOutcome) {
        let Some(hook) = self.hooks.get_mut(&key) else {
            return;
        };
        hook.in_flight = false;
        match bounded(outcome) {
            StepOutcome::Done => self.hook_done(key),
            StepOutcome::Pending {
                state,
                again_after,
                progress,
                waiting_for,
            } => {
                hook.due = self.now + again_after;
                if hook.state != state {
                    hook.state = state;
                    hook.revision = self.memory.change();
                }
                self.tell_waiting(key, progress, waiting_for);
            }
            StepOutcome::Failed {
                message,
                retry_after: Some(wait),
            } => {
                hook.due = self.now + wait;
                self.tell_waiting(key, message, Vec::new());
            }
            StepOutcome::Failed {
                message,
                retry_after: None,
            } => self.hook_failed(key, message),
        }
    }

    /// A step nobody has picked up is not taken.
    pub(super) fn step_taken_back(&mut self, key: &HookKey) {
        self.summary.hook_steps = self.summary.hook_steps.saturating_sub(1);
        if let Some(hook) = self.hooks.get_mut(key) {
            hook.in_flight = false;
        }
    }

    /// The pod is gone: nothing is to be done before its eviction any more.
    pub(super) fn forget_hooks_of(&mut self, pod: &Uid) {
        let subject = Subject::Pod(pod.clone());
        self.hooks.retain(|key, _| key.subject != subject);
        self.memory.done.retain(|key, _| key.subject != subject);
    }

    /// Adds up how long hooks were under way.
    pub(super) fn measure_hooks(&mut self) {
        match self.hooks_since {
            None if !self.hooks.is_empty() => self.hooks_since = Some(self.now),
            Some(since) if self.hooks.is_empty() => {
                self.hooks_since = None;
                let sum = self.summary.hook_wait.as_millis() + self.now.since(since).as_millis();
                self.summary.hook_wait = Duration::from_millis(sum);
            }
            _ => {}
        }
    }

    fn policies_with(&self, phase: HookPhase) -> Vec<String> {
        let policies = self
            .request
            .policies
            .iter()
            .filter(|policy| policy.phases.contains(&phase));
        policies.map(|policy| policy.name.clone()).collect()
    }

    fn take_step(&mut self, key: HookKey) {
        if self.paused {
            return;
        }
        let hook = self
            .hooks
            .entry(key.clone())
            .or_insert_with(|| OpenHook::begun(self.now));
        if hook.in_flight || hook.due > self.now || !self.memory.is_saved(hook.revision) {
            return;
        }
        hook.in_flight = true;
        self.summary.hook_steps += 1;
        let step = HookStep {
            policy: key.policy.clone(),
            phase: key.phase,
            subject: key.subject.clone(),
            state: hook.state.clone(),
        };
        self.outbox.push(Task::Step(step), Job::Step(key));
    }

    fn hook_done(&mut self, key: HookKey) {
        self.hooks.remove(&key);
        let HookKey {
            phase,
            subject,
            policy,
        } = key.clone();
        let revision = self.memory.change();
        self.memory.done.insert(key, revision);
        self.outbox.tell(Notice::HookDone {
            policy,
            phase,
            subject,
        });
    }

    /// Without its hook a drain cannot go on. Putting back is tried once and then given up: it must end.
    fn hook_failed(&mut self, key: HookKey, message: String) {
        if key.phase == HookPhase::OnCancel {
            self.tell_waiting(key.clone(), message, Vec::new());
            self.hooks.remove(&key);
            let revision = self.memory.change();
            self.memory.done.insert(key, revision);
            return;
        }
        self.hooks.remove(&key);
        let message = format!("{} hook: {message}", key.phase);
        self.stop(Outcome::PolicyFailed {
            policy: key.policy,
            message,
        });
    }

    fn tell_waiting(&mut self, key: HookKey, progress: String, waiting_for: Vec<WaitingOn>) {
        let Some(hook) = self.hooks.get_mut(&key) else {
            return;
        };
        let news = (progress, waiting_for);
        if hook.told.as_ref() == Some(&news) {
            return;
        }
        hook.told = Some(news.clone());
        let HookKey {
            phase,
            subject,
            policy,
        } = key;
        let (progress, waiting_for) = news;
        self.outbox.tell(Notice::HookWaiting {
            policy,
            phase,
            subject,
            progress,
            waiting_for,
        });
    }
}

/// The host's bounds on what a step may answer.
fn bounded(outcome: StepOutcome) -> StepOutcome {
    match outcome {
        StepOutcome::Pending { state, .. } if state.len() > LARGEST_STATE => StepOutcome::Failed {
            message: format!(
                "its state is {} bytes long: at most {LARGEST_STATE} can be kept",
                state.len()
            ),
            retry_after: None,
        },
        StepOutcome::Pending {
            state,
            again_after,
            progress,
            waiting_for,
        } => StepOutcome::Pending {
            state,
            again_after: again_after.clamp(SOONEST, LATEST),
            progress,
            waiting_for,
        },
        StepOutcome::Failed { message, retry_after } => {
            let retry_after = retry_after.map(|wait| wait.clamp(SOONEST_RETRY, LATEST));
            StepOutcome::Failed { message, retry_after }
        }
        StepOutcome::Done => StepOutcome::Done,
    }
}
