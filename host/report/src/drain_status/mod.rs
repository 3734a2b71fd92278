//! The part of a drain's state that only the draining process knows: why each pod is still there, the wave, what hooks
//! wait for. One annotation of the node holds it, so it stays small.
//!
//! This module builds, encodes and decodes the status. It must not know when or how the status is written.

mod builder;
mod estimate;
mod force;
mod json;
mod plan;
mod pods;
mod reason;
mod surge;
mod text;
mod volumes;
mod wire;

use scupper_engine::{Checkpoint, HookPhase, Notice, Reason, SavedHook, Subject, Time, Uid, WaitingOn};

pub use builder::StatusBuilder;
pub use estimate::Estimate;
pub use force::{ForceStatus, ForcedNames};
pub(super) use json::{hook_name_to_json, joined, pod_name_to_json, pod_to_json};
pub use plan::PlanSummary;
pub(super) use plan::PodGroup;
pub use surge::SurgeSummary;
pub use text::subject_text;
pub(super) use text::{HOOK_RUNS, contains_duration, for_so_long, pod_text, reason_text};
pub use volumes::VolumesStatus;
pub(super) use volumes::volumes_to_json;
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
    /// The operator has said that the node's machine is off.
    pub machine_is_off: bool,
    /// How the drain ended, as text, if it ended without success.
    pub ended: Option<String>,
    /// The plan, if a client follows the drain.
    pub plan: Option<PlanSummary>,
    /// The wave that is being evicted.
    pub wave: Option<WaveStatus>,
    /// Hooks that have not finished.
    pub hooks: Vec<HookStatus>,
    /// The volumes that it waits for after the last pod.
    pub volumes: Option<VolumesStatus>,
    /// Which pods are deleted shortly before the deadline; `None`: none.
    pub force: Option<ForceStatus>,
    /// When it will probably end; `None`: not known.
    pub estimate: Option<Estimate>,
    /// Pods still to be evicted, and pods that arrived during the drain and stay.
    pub pods: Vec<PodStatus>,
    /// Number of further pods to be evicted, for which there was no room.
    pub more: u32,
    /// The first pods that the drain keeps; published only where there are further pods, which cannot be told from them
    /// otherwise.
    pub kept: Vec<Uid>,
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

/// Identifies a hook of one drain.
pub type HookKey = (String, HookPhase, Subject);

/// The hooks that have not finished: those that the draining process published, and those that only the checkpoint
/// has. The checkpoint knows first that a hook has finished, and its time of the start survives a handover.
pub fn open_hooks(mark: &Checkpoint, published: Option<&DrainStatus>) -> Vec<HookStatus> {
    let mut saved: Vec<HookStatus> = mark.hooks.iter().map(HookStatus::of_saved).collect();
    let published = published.into_iter().flat_map(|status| &status.hooks);
    let mut hooks = Vec::new();
    for hook in published.filter(|hook| !mark.done.contains(&hook.key())) {
        let known = saved.iter().position(|saved| saved.key() == hook.key());
        let since = known.map_or(hook.since, |place| saved.remove(place).since);
        hooks.push(HookStatus {
            since,
            ..hook.clone()
        });
    }
    hooks.append(&mut saved);
    hooks
}

impl WaveStatus {
    /// The wave that a notice reports.
    pub(super) fn of(notice: &Notice) -> Option<Self> {
        let Notice::WaveStarted { name, number, of, .. } = notice else {
            return None;
        };
        Some(Self {
            name: name.clone(),
            number: *number,
            of: *of,
        })
    }
}

impl HookStatus {
    /// The hook that a notice reports.
    pub(super) fn of(notice: &Notice) -> Option<Self> {
        let Notice::HookWaiting {
            policy,
            phase,
            subject,
            since,
            progress,
            waiting_for,
        } = notice
        else {
            return None;
        };
        Some(Self {
            policy: policy.clone(),
            phase: *phase,
            subject: subject.clone(),
            since: *since,
            progress: progress.clone(),
            waiting_for: waiting_for.clone(),
        })
    }

    /// A hook of which only the start is known.
    fn of_saved(hook: &SavedHook) -> Self {
        Self {
            policy: hook.policy.clone(),
            phase: hook.phase,
            subject: hook.subject.clone(),
            since: hook.started,
            progress: String::new(),
            waiting_for: Vec::new(),
        }
    }

    /// Identifies it among the hooks of its drain.
    pub fn key(&self) -> HookKey {
        (self.policy.clone(), self.phase, self.subject.clone())
    }

    /// Whether it waits for the same, in the same words, regardless of since when.
    pub fn has_same_progress(&self, other: &Self) -> bool {
        let awaited = |on: &WaitingOn| (on.what.clone(), on.detail.clone());
        self.progress == other.progress
            && self
                .waiting_for
                .iter()
                .map(awaited)
                .eq(other.waiting_for.iter().map(awaited))
    }

    /// Whether more is known than its start.
    pub fn has_progress(&self) -> bool {
        !self.progress.is_empty() || !self.waiting_for.is_empty()
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
    /// Whether the content is the same, regardless of the moment. As time passes the estimate changes as well.
    pub fn has_same_content(&self, other: &Self) -> bool {
        let moved = Self {
            at: other.at,
            estimate: other.estimate,
            ..self.clone()
        };
        moved == *other
    }

    /// Whether the plan, the wave, the hooks, the volumes and the forced pods are the same, and whether there is an estimate.
    pub fn has_same_story(&self, other: &Self) -> bool {
        (&self.plan, &self.wave, &self.hooks, &self.volumes)
            == (&other.plan, &other.wave, &other.hooks, &other.volumes)
            && self.forced() == other.forced()
            && self.estimate.is_some() == other.estimate.is_some()
    }

    /// The pods that were deleted shortly before the deadline; `None`: none were.
    fn forced(&self) -> Option<&ForcedNames> {
        let forced = self.force.as_ref().map(|force| &force.deleted);
        forced.filter(|forced| forced.count > 0)
    }

    /// Whether it contains anything that is not visible from outside. Pods that merely take their time are visible.
    pub fn is_worth_publishing(&self) -> bool {
        let needs_no_report = |pod: &PodStatus| {
            matches!(
                pod.reason,
                Reason::Terminating { .. } | Reason::EvictionRequested | Reason::NotPlanned
            )
        };
        !self.hooks.is_empty()
            || self.volumes.is_some()
            || self.forced().is_some()
            || !self.pods.iter().all(needs_no_report)
    }
}

#[cfg(test)]
mod tests;
