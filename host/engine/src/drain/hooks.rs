//! The hooks of a phase and subject: they run one after the other, in chain order, and [`Gate`] says whether all have
//! finished.
//!
//! This module must not know what a phase is for.

use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::hook_state::HookKey;
use crate::{HeldUp, HookPhase, Reason, Subject, Uid};

/// Whether the hooks of a phase and subject have finished.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// All of them have, and it is saved.
    Open,
    /// This policy's has not.
    Closed { policy: String },
}

impl Gate {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

impl Drain {
    /// Whether the hooks have finished; takes the next step of the one whose turn it is.
    pub(super) fn gate(&mut self, phase: HookPhase, subject: &Subject) -> Gate {
        let policies: Vec<String> = self.policies_with(phase).cloned().collect();
        for policy in policies {
            let key = HookKey {
                phase,
                subject: subject.clone(),
                policy,
            };
            match self.hooks.done_in(&key) {
                Some(revision) if self.checkpoint_state.is_saved(revision) => {}
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

    /// Whether the hooks have finished, saved or not.
    pub(super) fn are_done(&self, phase: HookPhase, subject: &Subject) -> bool {
        self.policies_with(phase).all(|policy| {
            let key = HookKey {
                phase,
                subject: subject.clone(),
                policy: policy.clone(),
            };
            self.hooks.done_in(&key).is_some()
        })
    }

    pub(super) fn has_hooks(&self, phase: HookPhase) -> bool {
        self.request
            .policies
            .iter()
            .any(|policy| policy.phases.contains(&phase))
    }

    /// A hook of this pod has begun and not finished, or it is not saved yet that it has.
    pub(super) fn is_in_hook(&self, pod: &Uid) -> bool {
        if !self.has_hooks(HookPhase::BeforeEvict) {
            return false;
        }
        let is_saved = |revision| self.checkpoint_state.is_saved(revision);
        self.hooks.is_in_hook(pod, is_saved)
    }

    /// The hook of this phase that something waits for.
    pub(super) fn hook_reason(&self, phase: HookPhase, subject: &Subject) -> Option<Reason> {
        let policy = self.policies_with(phase).find(|policy| {
            let key = HookKey {
                phase,
                subject: subject.clone(),
                policy: (*policy).clone(),
            };
            let revision = self.hooks.done_in(&key);
            revision.is_none_or(|revision| !self.checkpoint_state.is_saved(revision))
        })?;
        Some(Reason::HookRunning {
            policy: policy.clone(),
            phase,
        })
    }

    /// The hook that the drain waits for, and what that hook has reported.
    pub(super) fn held_up(&self) -> Option<HeldUp> {
        let (key, hook) = self.hooks.open().find(|(key, _)| self.is_waited_for(key))?;
        Some(HeldUp {
            policy: key.policy.clone(),
            phase: key.phase,
            reported: hook.said().unwrap_or_default(),
            is_before_evictions: self.outbox.totals().evictions == 0,
        })
    }

    /// Nothing waits for the hooks of a wave whose pods have gone, or all but those for which they had finished, until one
    /// more comes; nor for a hook of an earlier process whose policy takes no part in this one.
    pub(super) fn is_waited_for(&self, hook: &HookKey) -> bool {
        if !self
            .policies_with(hook.phase)
            .any(|policy| *policy == hook.policy)
        {
            return false;
        }
        let Subject::Wave(name) = &hook.subject else {
            return true;
        };
        let mut waves = self.plan_state.waves().iter();
        waves.any(|run| run.wave().name == *name && run.waits_for_hooks())
    }

    /// The pod is gone: its eviction has no hooks any more.
    pub(super) fn forget_hooks_of(&mut self, pod: &Uid) {
        let subject = Subject::Pod(pod.clone());
        self.hooks.retain(|other| *other != subject);
    }

    /// Forgets hooks that an earlier process began for pods that are gone.
    pub(super) fn forget_hooks_of_others(&mut self) {
        let plan_state = &self.plan_state;
        let stands = |subject: &Subject| match subject {
            Subject::Pod(uid) => plan_state.target(uid).is_some(),
            Subject::Node | Subject::Wave(_) => true,
        };
        self.hooks.retain(stands);
    }

    fn policies_with(&self, phase: HookPhase) -> impl Iterator<Item = &String> {
        let policies = self.request.policies.iter();
        policies
            .filter(move |policy| policy.phases.contains(&phase))
            .map(|policy| &policy.name)
    }
}
