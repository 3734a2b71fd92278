//! What must survive the process, and how far it has been saved.
//!
//! Every change takes a new revision. A hook goes on only when the revision of its last change is known to be saved,
//! so that after a crash at most the step that was running is taken again.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::cordon_state::{Cordon, CordonState};
use super::hooks::{HookKey, OpenHook};
use super::save_limiter::SaveLimiter;
use crate::{Checkpoint, HookPhase, Outcome, Phase, SavedHook, Time, Uid};

/// How many controllers that put pods back are remembered; the most frequent stay.
const REMEMBERED_RETURNS: usize = 16;
/// How many pods that came and stay are remembered; after a restart the others are decided on again.
const REMEMBERED_STAYS: usize = 128;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CheckpointState {
    /// An earlier drain of ours had drained the node when this one found it.
    pub(super) found_drained: bool,
    /// An earlier process had begun to roll back, and whether it was to leave the cordon.
    pub(super) held: Option<bool>,
    /// An earlier process had ended this drain, and left the cordon and what policies changed.
    pub(super) left_held: bool,
    /// Policies that have something to undo when the node is given back, from this drain or an earlier one.
    pub(super) to_undo: BTreeSet<String>,
    /// Hooks that are through, and the revision that says so.
    pub(super) done: BTreeMap<HookKey, u64>,
    /// How often pods were put back, by namespace and controller.
    pub(super) returns: BTreeMap<String, u32>,
    /// Pods that came to the cordoned node and stay.
    pub(super) stays: BTreeSet<Uid>,
    /// An earlier process had ended this drain well: it is never rolled back.
    pub(super) ended_well: bool,
    /// A checkpoint of this drain is on the node.
    pub(super) on_node: bool,
    /// There is no node any more to save anything on.
    pub(super) node_gone: bool,
    revision: u64,
    /// The last change that is saved at once: everything but where a hook stands that is not through.
    urgent: u64,
    saved: u64,
    /// How often the others are saved.
    pub(super) save_limiter: SaveLimiter,
}

impl CheckpointState {
    /// Something has changed that must be saved; its revision.
    pub(super) fn change(&mut self) -> u64 {
        self.urgent = self.go_on();
        self.urgent
    }

    /// A hook that is not through has got further; the revision that must be saved before its next step.
    pub(super) fn go_on(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// When what is not saved is to be saved; `None`: everything is.
    pub(super) fn save_due(&self) -> Option<Time> {
        if self.is_all_saved() {
            None
        } else if self.is_saved(self.urgent) {
            Some(self.save_limiter.due())
        } else {
            Some(Time::default())
        }
    }

    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    /// Everything up to this revision is on the node.
    pub(super) fn saved(&mut self, revision: u64) {
        self.saved = self.saved.max(revision);
        self.on_node = true;
    }

    pub(super) const fn is_saved(&self, revision: u64) -> bool {
        self.node_gone || revision <= self.saved
    }

    pub(super) const fn is_all_saved(&self) -> bool {
        self.is_saved(self.revision)
    }

    /// A pod came to the cordoned node and stays.
    pub(super) fn count_stay(&mut self, uid: Uid) {
        if self.stays.len() < REMEMBERED_STAYS && self.stays.insert(uid) {
            self.change();
        }
    }

    /// A controller has put a pod back; how often that makes.
    pub(super) fn count_return(&mut self, key: String) -> u32 {
        let count = self.returns.entry(key).or_default();
        *count += 1;
        let count = *count;
        while self.returns.len() > REMEMBERED_RETURNS {
            let Some(rarest) = self
                .returns
                .iter()
                .min_by_key(|(_, count)| **count)
                .map(|(key, _)| key.clone())
            else {
                break;
            };
            self.returns.remove(&rarest);
        }
        self.change();
        count
    }
}

impl Drain {
    /// What would be saved now.
    pub(super) fn checkpoint(&self, phase: Phase, own_cordon: bool) -> Checkpoint {
        let hooks = self.hooks.iter().map(|(key, hook)| SavedHook {
            policy: key.policy.clone(),
            phase: key.phase,
            subject: key.subject.clone(),
            state: hook.state.clone(),
            state_version: hook.state_version,
            started: hook.started,
        });
        let done = self
            .checkpoint_state
            .done
            .keys()
            .map(|key| (key.policy.clone(), key.phase, key.subject.clone()));
        Checkpoint {
            node: self.cluster.node_state.uid().cloned(),
            id: self.request.id.clone(),
            name: self.request.name.clone(),
            trigger: self.request.trigger.clone(),
            phase,
            started: self.started,
            deadline: self.request.deadline,
            own_cordon,
            inherited: own_cordon && self.cordon.is_inherited(),
            drained: self.checkpoint_state.found_drained,
            cancelled: self.cancelled_by(phase),
            held: self.held_at(phase),
            to_undo: self.checkpoint_state.to_undo.clone(),
            hooks: hooks.collect(),
            done: done.collect(),
            returns: self.checkpoint_state.returns.clone(),
            stays: self.checkpoint_state.stays.clone(),
            ended_well: self.checkpoint_state.ended_well || self.ends_well(phase),
            counts: self.counts(),
        }
    }

    fn ends_well(&self, phase: Phase) -> bool {
        phase == Phase::Finished && matches!(self.outcome, Some(Outcome::Drained))
    }

    /// Whoever takes a roll-back up must know that it was asked for: only then the cordon goes, too.
    fn cancelled_by(&self, phase: Phase) -> Option<String> {
        match &self.outcome {
            Some(Outcome::Cancelled { reason }) if phase == Phase::RollingBack => Some(reason.clone()),
            _ => None,
        }
    }

    /// Whoever takes a roll-back up must say the same to policies, whatever its own settings are.
    fn held_at(&self, phase: Phase) -> Option<bool> {
        let is_over = matches!(phase, Phase::RollingBack | Phase::Finished);
        let outcome = self.outcome.as_ref().filter(|_| is_over)?;
        let is_failure = !outcome.is_success() && !matches!(outcome, Outcome::Cancelled { .. });
        is_failure.then(|| self.keeps_node())
    }

    /// The last word: the mark of a cordon that stays. What a failed drain's hooks did has been put back, so a drain
    /// that begins from here calls them again.
    pub(super) fn last_checkpoint(&self) -> Checkpoint {
        let mut checkpoint = self.checkpoint(Phase::Finished, self.cordon.is_ours());
        if self.outcome == Some(Outcome::Drained) || checkpoint.held == Some(true) {
            checkpoint.to_undo.extend(self.undoing_policies());
        }
        match &self.outcome {
            Some(outcome) if outcome.is_success() => Checkpoint {
                drained: true,
                ..checkpoint
            },
            Some(_) if self.checkpoint_state.ended_well => checkpoint,
            _ => Checkpoint {
                hooks: Vec::new(),
                done: Vec::new(),
                returns: BTreeMap::new(),
                stays: BTreeSet::new(),
                ..checkpoint
            },
        }
    }

    /// Those that are called when the node is given back.
    fn undoing_policies(&self) -> impl Iterator<Item = String> {
        let undoes =
            |phase: &HookPhase| matches!(phase, HookPhase::BeforeUncordon | HookPhase::AfterUncordon);
        let policies = self.request.policies.iter();
        policies
            .filter(move |policy| policy.phases.iter().any(undoes))
            .map(|policy| policy.name.clone())
    }

    /// Takes up what an earlier process left behind.
    pub(super) fn restore(&mut self, checkpoint: Checkpoint) {
        self.cluster.node_state.expect(checkpoint.node);
        self.started = checkpoint.started;
        self.summary.started = checkpoint.started;
        self.cordon = CordonState::known(match (checkpoint.own_cordon, checkpoint.inherited) {
            (true, true) => Cordon::Inherited,
            (true, false) => Cordon::Ours,
            (false, _) => Cordon::Unknown,
        });
        self.checkpoint_state.found_drained = checkpoint.drained;
        self.checkpoint_state.to_undo = checkpoint.to_undo;
        match checkpoint.phase {
            Phase::RollingBack => self.checkpoint_state.held = checkpoint.held,
            Phase::Finished => self.checkpoint_state.left_held = checkpoint.held == Some(true),
            _ => {}
        }
        self.checkpoint_state.on_node = true;
        self.checkpoint_state.returns = checkpoint.returns;
        self.checkpoint_state.stays = checkpoint.stays;
        self.checkpoint_state.ended_well = checkpoint.ended_well;
        self.restore_counts(checkpoint.counts);
        for (policy, phase, subject) in checkpoint.done {
            self.checkpoint_state.done.insert(
                HookKey {
                    phase,
                    subject,
                    policy,
                },
                0,
            );
        }
        for saved in checkpoint.hooks {
            let key = HookKey {
                phase: saved.phase,
                subject: saved.subject.clone(),
                policy: saved.policy.clone(),
            };
            self.hooks.insert(key, OpenHook::resumed(saved, self.now));
        }
        self.resumed = Some(checkpoint.phase);
    }
}
