//! What policies have changed outside of Kubernetes and not undone. The record outlives the drain: it stays in the node's mark
//! until the uncordon hooks of each policy have finished. Only policies that can undo something are in it.
//!
//! Which policies have acted is derived from the hooks that have begun. Saved is what earlier drains have left, and why an undo
//! failed.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::hook_state::HookKey;
use crate::{HookPhase, Intent, Outcome, PolicyInfo, Subject, ToUndo};

/// The longest text of a policy that is kept, in characters.
const LONGEST_WORDS: usize = 400;

impl Drain {
    /// What earlier drains have left according to the node's Lease, and the policies that a killed process of this drain may
    /// have called. The node's own mark counts instead, where there is one; but it does not survive its Node.
    pub fn recall_to_undo(&mut self, left: ToUndo, own: BTreeSet<String>) {
        if self.resumed.is_none() {
            self.checkpoint_state.recall_to_undo(left, own);
            self.tell_end_again();
        }
    }

    /// What policies must undo at the next uncordon, as far as is known now.
    pub fn to_undo(&self) -> ToUndo {
        match self.request.intent {
            Intent::Drain => self.left_by_drain(),
            Intent::Uncordon => self.left_by_uncordon(),
        }
    }

    /// What the end must name: what should have been undone by now.
    pub(super) fn not_undone(&self) -> ToUndo {
        let mut left = self.to_undo();
        if self.request.intent == Intent::Drain {
            left.retain(|_, words| !words.is_empty());
        }
        left
    }

    /// Policies that leave the node out of service elsewhere at the end of a drain, as the plan was. Of what should have been
    /// undone, there are words.
    pub(super) fn kept_by(&self) -> Vec<String> {
        if self.request.intent == Intent::Uncordon {
            return Vec::new();
        }
        let left = self.to_undo().into_iter();
        let kept = left.filter(|(_, words)| words.is_empty());
        kept.map(|(policy, _)| policy).collect()
    }

    /// The record continues what is on the node; a mark of a drain that never ended says which of its hooks had begun.
    pub(super) fn find_to_undo(&mut self) {
        let node = self.cluster.node();
        let Some(mark) = node.and_then(|node| node.checkpoint.as_ref()) else {
            return;
        };
        let mut left = mark.left_to_undo();
        let (mut recalled, mut known) = (BTreeSet::new(), ToUndo::new());
        if mark.is_under_way() {
            // It may have been killed in a hook's first step.
            known = self.checkpoint_state.to_undo_and_recalled();
        } else if mark.ahead {
            // It is older than what drains have done there without a save.
            recalled.clone_from(self.checkpoint_state.recalled());
            known.clone_from(self.checkpoint_state.to_undo());
        }
        for (policy, words) in known {
            left.entry(policy).or_insert(words);
        }
        left.retain(|name, _| self.loaded(name).is_none_or(PolicyInfo::undoes_later));
        self.checkpoint_state.recall_to_undo(left, recalled);
    }

    /// The first policy that must undo something at this uncordon and is not loaded, and how many there are.
    pub(super) fn absent_to_undo(&self) -> Option<(&String, usize)> {
        let to_undo = self.checkpoint_state.to_undo().keys();
        let mut absent = to_undo.filter(|name| self.loaded(name).is_none());
        let first = absent.next()?;
        Some((first, 1 + absent.count()))
    }

    /// A hook that was to undo something has failed for good.
    pub(super) fn undo_failed(&mut self, key: &HookKey, message: &str) {
        if key.phase.undoes() && self.loaded(&key.policy).is_some_and(PolicyInfo::undoes_later) {
            let words = shortened(message);
            self.checkpoint_state.set_not_undone(key.policy.clone(), words);
        }
    }

    fn left_by_drain(&self) -> ToUndo {
        let mut left = self.checkpoint_state.to_undo().clone();
        let is_kept = !self.checkpoint_state.is_node_lost() && self.keeps_what_policies_did();
        for name in self.acted() {
            if is_kept {
                left.insert(name, String::new());
            } else if !self.has_followed_cancel(&name) {
                let words = left.entry(name.clone()).or_default();
                if words.is_empty() {
                    *words = self.why_not_undone(&name);
                }
            }
        }
        left
    }

    fn left_by_uncordon(&self) -> ToUndo {
        let mut left = self.checkpoint_state.to_undo().clone();
        left.retain(|name, _| {
            !self
                .loaded(name)
                .is_some_and(|policy| self.has_uncordoned(policy))
        });
        if self.outcome.is_some() && self.hooks.any_ran() {
            for (name, words) in &mut left {
                let mut phases = HookPhase::UNCORDON.iter();
                let reported = phases.find_map(|phase| self.hook_report(name, *phase));
                let unsaid = words
                    .is_empty()
                    .then(|| String::from("the uncordon ended before its hook had finished"));
                // The newest cause.
                if let Some(cause) = reported.or(unsaid) {
                    *words = cause;
                }
            }
        }
        left
    }

    /// The policies that have changed something in this drain, as far as the host can know. One whose first answer was that it
    /// failed for good has not. An earlier process may have been killed in the first step of any hook.
    fn acted(&self) -> BTreeSet<String> {
        let was_killed = self.resumed.is_some_and(|phase| !phase.is_last());
        let may_act = |policy: &&PolicyInfo| policy.phases.iter().any(|phase| !phase.undoes());
        let loaded = self.request.policies.iter().filter(may_act);
        let may_have = loaded.filter(|_| was_killed).map(|policy| &policy.name);
        let called = self.hooks.changing_policies().chain(may_have);
        let called = called.chain(self.checkpoint_state.recalled());
        let undoes = |name: &&String| self.loaded(name).is_none_or(PolicyInfo::undoes_later);
        called.filter(undoes).cloned().collect()
    }

    /// The node stays out of service, and with it what policies did for that.
    fn keeps_what_policies_did(&self) -> bool {
        let stays = match &self.outcome {
            None => true,
            Some(Outcome::Cancelled { .. }) => false,
            Some(outcome) => outcome.is_success() || self.keeps_node(),
        };
        stays || self.checkpoint_state.found_drained()
    }

    /// Its cancel hook has finished and had to undo what this drain did. What an earlier one has left, it does not undo.
    fn has_followed_cancel(&self, policy: &str) -> bool {
        let is_in_record = self.checkpoint_state.to_undo().contains_key(policy);
        self.has_finished(policy, HookPhase::OnCancel) && !is_in_record && !self.keeps_what_policies_did()
    }

    /// Every hook that it has for an uncordon has finished.
    fn has_uncordoned(&self, policy: &PolicyInfo) -> bool {
        let mut phases = HookPhase::UNCORDON
            .iter()
            .filter(|phase| policy.phases.contains(phase));
        phases.all(|phase| self.has_finished(&policy.name, *phase))
    }

    fn has_finished(&self, policy: &str, phase: HookPhase) -> bool {
        self.hooks.done_in(&key(policy, phase)).is_some()
    }

    fn why_not_undone(&self, policy: &str) -> String {
        let reported = self.hook_report(policy, HookPhase::OnCancel);
        let default = match self.loaded(policy) {
            _ if self.checkpoint_state.is_node_lost() => "the Node was deleted or made anew",
            None => "it is not active here",
            Some(loaded) if !loaded.phases.contains(&HookPhase::OnCancel) => {
                "it undoes its part only at an uncordon"
            }
            Some(_) if self.has_finished(policy, HookPhase::OnCancel) => "an earlier drain has left it",
            Some(_) => "its on-cancel hook has not finished",
        };
        reported.unwrap_or_else(|| String::from(default))
    }

    /// What its hook that has not finished said last.
    fn hook_report(&self, policy: &str, phase: HookPhase) -> Option<String> {
        let key = key(policy, phase);
        let (_, hook) = self.hooks.open().find(|(open, _)| **open == key)?;
        hook.said().map(|said| shortened(&said))
    }

    fn loaded(&self, policy: &str) -> Option<&PolicyInfo> {
        let mut policies = self.request.policies.iter();
        policies.find(|loaded| loaded.name == policy)
    }
}

fn key(policy: &str, phase: HookPhase) -> HookKey {
    HookKey {
        phase,
        subject: Subject::Node,
        policy: String::from(policy),
    }
}

/// The record is kept in an annotation, and shown in one line.
fn shortened(words: &str) -> String {
    words.chars().take(LONGEST_WORDS).collect()
}
