//! The runner of hooks: one step at a time for each hook, its state saved before the next.
//!
//! The hooks of one phase and subject stand in a row, in chain order; [`Gate`] says whether all of them are through.
//! It must not know what a phase is for.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use crate::{HeldUp, HookPhase, Reason, SavedHook, Subject, Time, Uid, WaitingOn};

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
    /// Which version of the policy's state that is, where it is known.
    pub(super) state_version: Option<u32>,
    pub(super) started: Time,
    /// When its next step may be taken.
    pub(super) due: Time,
    /// Its step has not been answered.
    pub(super) in_flight: bool,
    /// The revision of its last change.
    pub(super) revision: u64,
    /// What people were told last.
    pub(super) reported: Option<(String, Vec<WaitingOn>)>,
}

/// Whether the hooks of a phase and subject are through.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// All of them, and it is saved.
    Open,
    /// This policy's is not.
    Closed { policy: String },
}

impl Gate {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

impl OpenHook {
    pub(super) const fn begun(now: Time) -> Self {
        Self {
            state: Vec::new(),
            state_version: None,
            started: now,
            due: now,
            in_flight: false,
            revision: 0,
            reported: None,
        }
    }

    pub(super) fn resumed(saved: SavedHook, now: Time) -> Self {
        Self {
            state: saved.state,
            state_version: saved.state_version,
            started: saved.started,
            ..Self::begun(now)
        }
    }
}

impl Drain {
    /// Whether the hooks are through; takes the next step of the one whose turn it is.
    pub(super) fn gate(&mut self, phase: HookPhase, subject: &Subject) -> Gate {
        let policies: Vec<String> = self.policies_with(phase).cloned().collect();
        for policy in policies {
            let key = HookKey {
                phase,
                subject: subject.clone(),
                policy,
            };
            match self.checkpoint_state.done.get(&key) {
                Some(revision) if self.checkpoint_state.is_saved(*revision) => {}
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

    /// Whether the hooks are through, saved or not.
    pub(super) fn are_done(&self, phase: HookPhase, subject: &Subject) -> bool {
        self.policies_with(phase).all(|policy| {
            let key = HookKey {
                phase,
                subject: subject.clone(),
                policy: policy.clone(),
            };
            self.checkpoint_state.done.contains_key(&key)
        })
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
            .checkpoint_state
            .done
            .range(&first..)
            .take_while(|(key, _)| key.subject == first.subject);
        open || done.any(|(_, revision)| !self.checkpoint_state.is_saved(*revision))
    }

    /// Why something waits that waits for a hook of this phase.
    pub(super) fn hook_reason(&self, phase: HookPhase, subject: &Subject) -> Option<Reason> {
        let policy = self.policies_with(phase).find(|policy| {
            let key = HookKey {
                phase,
                subject: subject.clone(),
                policy: (*policy).clone(),
            };
            self.checkpoint_state
                .done
                .get(&key)
                .is_none_or(|revision| !self.checkpoint_state.is_saved(*revision))
        })?;
        Some(Reason::HookRunning {
            policy: policy.clone(),
            phase,
        })
    }

    /// The hook that the drain waits for, and what that hook waits for.
    pub(super) fn held_up(&self) -> Option<HeldUp> {
        let (key, hook) = self.hooks.iter().next()?;
        let awaited = match hook.reported.as_ref() {
            None => String::new(),
            Some((_, waiting_for)) if !waiting_for.is_empty() => all_of(waiting_for),
            Some((progress, _)) => progress.clone(),
        };
        Some(HeldUp {
            policy: key.policy.clone(),
            phase: key.phase,
            awaited,
            is_before_evictions: self.summary.evictions == 0,
        })
    }

    /// The pod is gone: nothing is to be done before its eviction any more.
    pub(super) fn forget_hooks_of(&mut self, pod: &Uid) {
        let subject = Subject::Pod(pod.clone());
        self.hooks.retain(|key, _| key.subject != subject);
        self.checkpoint_state.done.retain(|key, _| key.subject != subject);
    }

    /// An earlier process may have left hooks of pods that have gone since.
    pub(super) fn forget_hooks_of_others(&mut self) {
        let plan_state = &self.plan_state;
        let stands = |subject: &Subject| match subject {
            Subject::Pod(uid) => plan_state.target(uid).is_some(),
            Subject::Node | Subject::Wave(_) => true,
        };
        self.hooks.retain(|key, _| stands(&key.subject));
        self.checkpoint_state.done.retain(|key, _| stands(&key.subject));
    }

    fn policies_with(&self, phase: HookPhase) -> impl Iterator<Item = &String> {
        let policies = self.request.policies.iter();
        policies
            .filter(move |policy| policy.phases.contains(&phase))
            .map(|policy| &policy.name)
    }
}

/// The first that a hook waits for, and how many more.
fn all_of(waiting_for: &[WaitingOn]) -> String {
    let mut text = String::new();
    if let [first, others @ ..] = waiting_for {
        text = match first.detail.as_str() {
            "" => first.what.clone(),
            detail => format!("{} ({detail})", first.what),
        };
        if !others.is_empty() {
            text.push_str(&format!(" and {} more", others.len()));
        }
    }
    text
}
