//! What the process that drains a node knows of its drain and nobody else can see: why each pod is still there, the
//! wave, what hooks wait for. It is kept in one annotation of the node, so it stays small.
//!
//! Here it is put together and taken apart. It must not know when it is written, nor how.

mod builder;
mod plan;
mod reason;
mod wire;

use scupper_engine::{HookPhase, Reason, SavedHook, Subject, Time, Uid, WaitingOn};

pub use builder::StatusBuilder;
pub use plan::PlanSummary;
pub(super) use plan::PodGroup;
pub use wire::{decode as status_from_text, encode as status_to_text};

/// The annotation of the node that keeps it.
pub const STATUS_ANNOTATION: &str = "scupper.dev/drain-status";

/// What the process that drains knew at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainStatus {
    /// The id of the drain.
    pub drain: String,
    /// The moment.
    pub at: Time,
    /// How it ended, in words, when it ended without being done.
    pub ended: Option<String>,
    /// The plan, where somebody follows the drain.
    pub plan: Option<PlanSummary>,
    /// The wave that is leaving.
    pub wave: Option<WaveStatus>,
    /// Hooks that are not through.
    pub hooks: Vec<HookStatus>,
    /// Pods that are still to leave, and those that came and stay.
    pub pods: Vec<PodStatus>,
    /// Pods that did not fit in.
    pub more: u32,
}

/// A wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveStatus {
    /// Its name.
    pub name: String,
    /// Its place, from 1.
    pub number: u32,
    /// How many waves there are.
    pub of: u32,
}

/// A hook that is not through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookStatus {
    /// Its policy.
    pub policy: String,
    /// Its phase.
    pub phase: HookPhase,
    /// What it was called for.
    pub subject: Subject,
    /// When it first said that it is not through.
    pub since: Time,
    /// Where it stands.
    pub progress: String,
    /// Whom it waits for.
    pub waiting_for: Vec<WaitingOn>,
}

impl HookStatus {
    /// When it began: a process that took the drain over has met it later than the node says.
    pub(super) fn began(&self, saved: &[SavedHook]) -> Time {
        let same = |it: &&SavedHook| {
            (&it.policy, it.phase, &it.subject) == (&self.policy, self.phase, &self.subject)
        };
        saved.iter().find(same).map_or(self.since, |it| it.started)
    }
}

/// A pod that is still to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodStatus {
    /// The pod.
    pub uid: Uid,
    /// Its wave; empty: none.
    pub wave: String,
    /// Why it is still there.
    pub reason: Reason,
    /// Since when it has been there for this reason, as far as that is known.
    pub since: Option<Time>,
}

impl DrainStatus {
    /// Whether it says the same as another one, said at another moment.
    pub fn has_same_content(&self, other: &Self) -> bool {
        let moved = Self {
            at: other.at,
            ..self.clone()
        };
        moved == *other
    }

    /// Whether it tells the same story as another one: the plan, the wave, and what hooks wait for.
    pub fn has_same_story(&self, other: &Self) -> bool {
        (&self.plan, &self.wave, &self.hooks) == (&other.plan, &other.wave, &other.hooks)
    }

    /// Whether it says anything that cannot be seen from outside: pods that only take their time can.
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
