//! What is saved on the node: the checkpoint from which another process continues.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use crate::{Checkpoint, Outcome, Phase, Uid, digest_of_pods};

impl Drain {
    /// The checkpoint to save now.
    pub(super) fn checkpoint(&self, node: Uid, phase: Phase, own_cordon: bool) -> Checkpoint {
        let hooks = self.hooks.open().map(|(key, hook)| hook.saved(key));
        let done = self.hooks.done();
        let done = done.map(|key| (key.policy.clone(), key.phase, key.subject.clone()));
        let ahead = self.is_cordoned_ahead();
        Checkpoint {
            node,
            id: self.request.id.clone(),
            name: self.request.name.clone(),
            trigger: self.request.trigger.clone(),
            intent: self.request.intent,
            phase,
            started: self.started,
            deadline: self.request.deadline,
            only_pods: self
                .request
                .settings
                .filters
                .only_pods
                .as_ref()
                .map(digest_of_pods),
            own_cordon: own_cordon || ahead,
            inherited: own_cordon && self.cordon.is_inherited(),
            ahead,
            drained: self.checkpoint_state.found_drained(),
            cancelled: self.cancelled_by(phase),
            held: self.held_at(phase),
            to_undo: self.checkpoint_state.to_undo_and_recalled(),
            left_before: BTreeSet::new(),
            hooks: hooks.collect(),
            done: done.collect(),
            returns: self.checkpoint_state.returns().clone(),
            stays: self.checkpoint_state.stays().clone(),
            ended_well: self.checkpoint_state.ended_well() || self.ends_well(phase),
            raised: self.raises.saved(),
            volumes_since: self.volumes.saved_since().filter(|_| !phase.is_last()),
            begun: Box::new(self.begun(own_cordon)),
            counts: self.counts(),
        }
    }

    fn ends_well(&self, phase: Phase) -> bool {
        phase == Phase::Finished && matches!(self.outcome, Some(Outcome::Drained))
    }

    /// A process that resumes a roll-back must know that it was asked for: only then it also lifts the cordon.
    fn cancelled_by(&self, phase: Phase) -> Option<String> {
        match &self.outcome {
            Some(Outcome::Cancelled { reason }) if phase == Phase::RollingBack => Some(reason.clone()),
            _ => None,
        }
    }

    /// A process that resumes a roll-back must tell policies the same, whatever its own settings are.
    fn held_at(&self, phase: Phase) -> Option<bool> {
        let is_over = matches!(phase, Phase::RollingBack | Phase::Finished);
        let outcome = self.outcome.as_ref().filter(|_| is_over)?;
        let is_failure = !outcome.is_success() && !matches!(outcome, Outcome::Cancelled { .. });
        is_failure.then(|| self.keeps_node())
    }

    /// The mark that stays: of our cordon, or of what policies have not undone. What a failed drain's hooks did is undone
    /// otherwise, so a drain that begins from here calls them again.
    pub(super) fn last_checkpoint(&self, node: Uid, own_cordon: bool) -> Checkpoint {
        let to_undo = self.to_undo();
        let mut left_before = self.checkpoint_state.left_before().clone();
        left_before.retain(|policy| to_undo.contains_key(policy));
        let checkpoint = Checkpoint {
            to_undo,
            left_before,
            ..self.checkpoint(node, Phase::Finished, own_cordon)
        };
        match &self.outcome {
            // Of a node that loses only some pods nothing more is known, and the condition says it of one that others have
            // cordoned: their cordon may go and come back.
            Some(outcome) if outcome.is_success() => Checkpoint {
                drained: own_cordon && (checkpoint.drained || checkpoint.only_pods.is_none()),
                ..checkpoint
            },
            Some(_) if self.checkpoint_state.ended_well() => checkpoint,
            _ => Checkpoint {
                hooks: Vec::new(),
                done: Vec::new(),
                returns: BTreeMap::new(),
                stays: BTreeSet::new(),
                begun: Box::default(),
                ..checkpoint
            },
        }
    }
}
