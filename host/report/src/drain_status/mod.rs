//! The part of a drain's state that only the draining process knows: why each pod is still there, the wave, what hooks
//! wait for. One annotation of the node holds it, so it stays small.
//!
//! This module builds, encodes and decodes the status. It must not know when or how the status is written.

mod builder;
mod plan;
mod reason;
mod wire;

use scupper_engine::{HookPhase, Reason, SavedHook, Subject, Time, Uid, WaitingOn};

pub use builder::StatusBuilder;
pub use plan::PlanSummary;
pub(super) use plan::PodGroup;
pub use wire::{decode as status_from_text, encode as status_to_text};

/// The annotation of the node that holds the status.
pub const STATUS_ANNOTATION: &str = "scupper.dev/drain-status";

/// The status of a drain at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainStatus {
    /// The id of the drain.
    pub drain: String,
    /// The moment of this status.
    pub at: Time,
    /// How the drain ended, as text, if it ended without success.
    pub ended: Option<String>,
    /// The plan, if a client follows the drain.
    pub plan: Option<PlanSummary>,
    /// The wave that is being evicted.
    pub wave: Option<WaveStatus>,
    /// Hooks that have not finished.
    pub hooks: Vec<HookStatus>,
    /// Pods still to be evicted, and pods that arrived during the drain and stay.
    pub pods: Vec<PodStatus>,
    /// Number of pods that did not fit.
    pub more: u32,
}

/// A wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveStatus {
    /// Its name.
    pub name: String,
    /// Its position, from 1.
    pub number: u32,
    /// The number of waves.
    pub of: u32,
}

/// A hook that has not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookStatus {
    /// Its policy.
    pub policy: String,
    /// Its phase.
    pub phase: HookPhase,
    /// The subject of the call.
    pub subject: Subject,
    /// Time of its first `pending` answer.
    pub since: Time,
    /// Its progress.
    pub progress: String,
    /// The objects that it waits for.
    pub waiting_for: Vec<WaitingOn>,
}

impl HookStatus {
    /// When the hook began. After a handover the checkpoint has the earlier, correct time.
    pub(super) fn began(&self, saved: &[SavedHook]) -> Time {
        let same = |it: &&SavedHook| {
            (&it.policy, it.phase, &it.subject) == (&self.policy, self.phase, &self.subject)
        };
        saved.iter().find(same).map_or(self.since, |it| it.started)
    }
}

/// A pod that is still to be evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodStatus {
    /// The pod.
    pub uid: Uid,
    /// Its wave; empty if it has none.
    pub wave: String,
    /// Why it is still there.
    pub reason: Reason,
    /// Since when this reason has applied, if known.
    pub since: Option<Time>,
}

impl DrainStatus {
    /// Whether the content is the same, regardless of the moment.
    pub fn has_same_content(&self, other: &Self) -> bool {
        let moved = Self {
            at: other.at,
            ..self.clone()
        };
        moved == *other
    }

    /// Whether the plan, the wave and the hooks are the same.
    pub fn has_same_story(&self, other: &Self) -> bool {
        (&self.plan, &self.wave, &self.hooks) == (&other.plan, &other.wave, &other.hooks)
    }

    /// Whether it contains anything that is not visible from outside. Pods that merely take their time are visible.
    pub fn is_worth_publishing(&self) -> bool {
        let needs_no_report = |pod: &PodStatus| {
            matches!(
                pod.reason,
                Reason::Terminating { .. } | Reason::EvictionRequested | Reason::NotPlanned
            )
        };
        !self.hooks.is_empty() || !self.pods.iter().all(needs_no_report)
    }
}

#[cfg(test)]
mod tests;
