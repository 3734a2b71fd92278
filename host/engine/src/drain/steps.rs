//! The steps of hooks: taking one, and what its answer means within the host's bounds.
//!
//! A policy can delay a drain and fail it. It cannot make it wait without a timer, and it cannot make the host keep
//! more than a little for it.

use core::time::Duration;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::hook_state::HookKey;
use super::outbox::Job;
use super::replies::StepReply;
use crate::{HookPhase, Notice, Outcome, StepOutcome, Task, WaitingOn};

/// A hook may ask to be called again this soon.
const SOONEST: Duration = Duration::from_millis(100);
/// A policy that failed is called again this soon.
pub(super) const SOONEST_RETRY: Duration = Duration::from_secs(1);
/// A policy that is to be called again is called at least this often.
pub(super) const LATEST: Duration = Duration::from_secs(300);
/// The checkpoint is kept in an annotation, which is small.
const LARGEST_STATE: usize = 1024;

impl Drain {
    /// Takes the hook's next step, if it is due and its last one is saved.
    pub(super) fn take_step(&mut self, key: HookKey) {
        // A driver that stops begins nothing new, but cancel hooks run while they can.
        if self.paused && key.phase != HookPhase::OnCancel {
            return;
        }
        let hook = self.hooks.open_or_begin(key.clone(), self.now);
        if !hook.is_due(self.now) || !self.checkpoint_state.is_saved(hook.revision()) {
            return;
        }
        let leaving = self.plan_state.still_leaving(key.phase, &key.subject);
        let (step, state_version) = hook.take_step(&key, leaving);
        self.outbox
            .push(Task::Step { step, state_version }, Job::Step(key));
    }

    fn hook_done(&mut self, key: HookKey) {
        let HookKey {
            phase,
            subject,
            policy,
        } = key.clone();
        self.hooks.finish(key, self.checkpoint_state.change());
        self.outbox.notify(Notice::HookDone {
            policy,
            phase,
            subject,
        });
    }

    /// Without its hook a drain cannot continue. A cancel hook is not tried again: the drain must end.
    fn hook_failed(&mut self, key: HookKey, message: String) {
        self.undo_failed(&key, &message);
        if key.phase == HookPhase::OnCancel {
            self.report_waiting(key.clone(), message, Vec::new());
            self.hooks.finish(key, self.checkpoint_state.change());
            return;
        }
        let revision = self.checkpoint_state.change();
        self.hooks.fail(key.clone(), revision);
        let message = format!("{} hook: {message}", key.phase);
        self.stop(Outcome::PolicyFailed {
            policy: key.policy,
            message,
        });
    }

    fn report_waiting(&mut self, key: HookKey, progress: String, waiting_for: Vec<WaitingOn>) {
        let Some(hook) = self.hooks.open_mut(&key) else {
            return;
        };
        let news = (progress, waiting_for);
        if !hook.report(&news) {
            return;
        }
        let since = hook.started();
        let HookKey {
            phase,
            subject,
            policy,
        } = key;
        let (progress, waiting_for) = news;
        self.outbox.notify(Notice::HookWaiting {
            policy,
            phase,
            subject,
            since,
            progress,
            waiting_for,
        });
    }

    /// A step was answered.
    pub(super) fn step_answered(&mut self, key: HookKey, reply: StepReply) {
        let leaving = self.plan_state.still_leaving(key.phase, &key.subject);
        let Some(hook) = self.hooks.open_mut(&key) else {
            return;
        };
        hook.end_step();
        if !matches!(&reply.outcome, StepOutcome::Failed { retry_after, .. } if retry_after.is_none()) {
            hook.note_answer();
        }
        match bounded(reply.outcome) {
            // Pods have joined the wave since the step was taken: it is called again for them.
            StepOutcome::Done if key.phase == HookPhase::BeforeWave && !hook.covers(&leaving) => {
                hook.wait(self.now, Duration::ZERO);
            }
            StepOutcome::Done => self.hook_done(key),
            StepOutcome::Pending {
                state,
                again_after,
                progress,
                waiting_for,
            } => {
                hook.wait(self.now, again_after);
                if hook.keep_state(state, reply.state_version) {
                    hook.set_revision(match key.phase {
                        // It has little time.
                        HookPhase::OnCancel => self.checkpoint_state.change(),
                        _ => self.checkpoint_state.go_on(),
                    });
                }
                self.report_waiting(key, progress, waiting_for);
            }
            StepOutcome::Failed {
                message,
                retry_after: Some(wait),
            } => {
                hook.wait(self.now, wait);
                self.report_waiting(key, message, Vec::new());
            }
            StepOutcome::Failed {
                message,
                retry_after: None,
            } => self.hook_failed(key, message),
        }
    }

    /// A step that was not picked up is not taken.
    pub(super) fn step_taken_back(&mut self, key: &HookKey) {
        if let Some(hook) = self.hooks.open_mut(key) {
            hook.end_step();
        }
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
