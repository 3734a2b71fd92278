//! What must survive the process, and how much of it is saved.
//!
//! Every change takes a new revision. A hook continues only when the revision of its last change is known to be saved,
//! so that after a crash at most the step that was running is repeated.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use super::save_limiter::SaveLimiter;
use crate::{Checkpoint, Intent, Phase, Time, ToUndo, Uid};

/// How many controllers that put pods back are remembered; the most frequent stay.
const REMEMBERED_RETURNS: usize = 16;
/// How many pods that came and stay are remembered; after a restart the others are decided on again.
const REMEMBERED_STAYS: usize = 128;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CheckpointState {
    /// An earlier drain of ours had drained the node when this one found it.
    found_drained: bool,
    /// An earlier process had begun to roll back, and whether it was to leave the cordon.
    held: Option<bool>,
    /// An earlier process had ended this drain, and left the cordon and what policies changed.
    left_held: bool,
    /// What policies must undo at the next uncordon, from this drain or an earlier one.
    to_undo: ToUndo,
    /// Those of them whose part an earlier drain has left.
    left_before: BTreeSet<String>,
    /// Policies that an earlier process of this drain had called, though not in a hook that is saved.
    recalled: BTreeSet<String>,
    /// How often pods were re-created, by namespace and controller.
    returns: BTreeMap<String, u32>,
    /// Pods that came to the cordoned node and stay.
    stays: BTreeSet<Uid>,
    /// An earlier process had ended this drain well: it is never rolled back.
    ended_well: bool,
    /// A checkpoint of this drain is on the node.
    on_node: bool,
    /// There is no node any more to save anything on, or it takes no writes.
    node_gone: bool,
    /// The node is deleted, or another one has its name.
    node_lost: bool,
    revision: u64,
    /// The last change that is saved at once: every change but the progress of a hook.
    urgent: u64,
    saved: u64,
    /// How often the others are saved.
    save_limiter: SaveLimiter,
}

impl CheckpointState {
    /// Continues from what an earlier process saved.
    pub(super) fn restored(checkpoint: &Checkpoint) -> Self {
        let held_at = |phase: Phase| checkpoint.held.filter(|_| checkpoint.phase == phase);
        let left_held = checkpoint.intent == Intent::Drain && held_at(Phase::Finished) == Some(true);
        let mut to_undo = checkpoint.to_undo.clone();
        let mut recalled: BTreeSet<String> = to_undo.keys().cloned().collect();
        let left_before = if left_held {
            // What this drain did itself, a cancel undoes.
            to_undo.retain(|policy, _| checkpoint.left_before.contains(policy));
            checkpoint.left_before.clone()
        } else {
            core::mem::take(&mut recalled)
        };
        Self {
            found_drained: checkpoint.drained,
            held: held_at(Phase::RollingBack),
            left_held,
            recalled,
            to_undo,
            left_before,
            returns: checkpoint.returns.clone(),
            stays: checkpoint.stays.clone(),
            ended_well: checkpoint.ended_well,
            on_node: true,
            ..Self::default()
        }
    }

    /// Something has changed that must be saved. Returns its revision.
    pub(super) fn change(&mut self) -> u64 {
        self.urgent = self.go_on();
        self.urgent
    }

    /// A hook has made progress. Returns the revision that must be saved before its next step.
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

    /// A controller has re-created a pod. Returns how often.
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

    /// A pod that stayed is gone.
    pub(super) fn forget_stay(&mut self, uid: &Uid) {
        self.stays.remove(uid);
    }

    pub(super) const fn stays(&self) -> &BTreeSet<Uid> {
        &self.stays
    }

    pub(super) const fn returns(&self) -> &BTreeMap<String, u32> {
        &self.returns
    }

    pub(super) const fn found_drained(&self) -> bool {
        self.found_drained
    }

    /// Notes whether an earlier drain of ours had drained the node.
    pub(super) const fn set_found_drained(&mut self, drained: bool) {
        self.found_drained = drained;
    }

    pub(super) const fn to_undo(&self) -> &ToUndo {
        &self.to_undo
    }

    /// What the node's Lease says of earlier drains and of this one, or its mark.
    pub(super) fn recall_to_undo(&mut self, left: ToUndo, own: BTreeSet<String>) {
        self.left_before = left.keys().cloned().collect();
        self.to_undo = left;
        self.recalled = own;
    }

    pub(super) const fn left_before(&self) -> &BTreeSet<String> {
        &self.left_before
    }

    pub(super) const fn recalled(&self) -> &BTreeSet<String> {
        &self.recalled
    }

    /// To be saved in the middle of the drain.
    pub(super) fn to_undo_and_recalled(&self) -> ToUndo {
        let recalled = self.recalled.iter().cloned();
        let mut all: ToUndo = recalled.map(|policy| (policy, String::new())).collect();
        all.extend(self.to_undo.clone());
        all
    }

    /// A policy could not undo its part.
    pub(super) fn set_not_undone(&mut self, policy: String, words: String) {
        self.to_undo.insert(policy, words);
    }

    pub(super) const fn held(&self) -> Option<bool> {
        self.held
    }

    pub(super) const fn left_held(&self) -> bool {
        self.left_held
    }

    pub(super) const fn ended_well(&self) -> bool {
        self.ended_well
    }

    pub(super) const fn is_on_node(&self) -> bool {
        self.on_node
    }

    /// A checkpoint of this drain is on the node, or was removed from it.
    pub(super) const fn set_on_node(&mut self, on_node: bool) {
        self.on_node = on_node;
    }

    pub(super) const fn is_node_gone(&self) -> bool {
        self.node_gone
    }

    /// The node is not there any more.
    pub(super) const fn lose_node(&mut self) {
        self.node_lost = true;
        self.give_up();
    }

    pub(super) const fn is_node_lost(&self) -> bool {
        self.node_lost
    }

    /// Nothing can be saved any more, and nothing waits for it.
    pub(super) const fn give_up(&mut self) {
        self.node_gone = true;
    }

    /// A save goes out.
    pub(super) fn count_save(&mut self, now: Time) {
        self.save_limiter.count(now);
    }
}
