//! How a drain ends: its outcome is fixed at once, then changes are undone or marked, then it is over.

use core::time::Duration;

use alloc::format;

use super::Drain;
use super::cordon_state::Cordon;
use super::writes::Write;
use crate::{HookPhase, Intent, Notice, Outcome, Phase, Subject, Time};

/// How long all cancel hooks together may take. A trigger that must answer by a deadline subtracts as
/// much from it; a policy that has not finished by then undoes the rest at the next uncordon.
const HOOKS_BOUND: Duration = Duration::from_secs(15);
/// How long the node's last write is tried after that.
const WRITES_BOUND: Duration = Duration::from_secs(15);
/// How long it is tried while the deadline is far.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long news of a cordon is waited for whose answer was lost, or that an earlier process may have made.
const NEWS_BOUND: Duration = Duration::from_secs(5);

/// How far the end has come.
#[derive(Debug)]
pub(super) struct Ending {
    /// When the outcome was fixed that is not success.
    stopped: Time,
    /// The node was not cordoned then, and this drain had not tried to.
    is_before_cordon: bool,
    /// The node was cordoned ahead of this drain, whose end takes that back although it has changed nothing else.
    is_ahead: bool,
    /// Since when nothing but the last write is missing.
    closing: Option<Time>,
    final_written: bool,
}

impl Ending {
    pub(super) const fn new(now: Time) -> Self {
        Self {
            stopped: now,
            is_before_cordon: false,
            is_ahead: false,
            closing: None,
            final_written: false,
        }
    }

    /// Nothing but the last write is missing.
    pub(super) const fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Since when.
    pub(super) const fn closing(&self) -> Option<Time> {
        self.closing
    }

    /// A checkpoint of this phase is on the node.
    pub(super) const fn written(&mut self, phase: Phase) {
        self.final_written |= phase.is_last();
    }
}

impl Drain {
    /// Fixes the outcome. From now on nothing is evicted and no hook of the drain is called.
    pub(super) fn stop(&mut self, outcome: Outcome) {
        if self.outcome.is_some() {
            return;
        }
        self.outcome = Some(self.unless_ended_well(outcome));
        self.ending.stopped = self.now;
        for (_, job) in self.outbox.take_back(|_| true) {
            self.job_taken_back(job);
        }
        self.chain = None;
        self.begin_rollback();
    }

    /// A drain that had ended well, and of which nothing was done again, is not called off any more: its end stands.
    fn unless_ended_well(&self, outcome: Outcome) -> Outcome {
        let is_from_outside = matches!(
            outcome,
            Outcome::Cancelled { .. } | Outcome::Lost { .. } | Outcome::DeadlineExceeded { .. }
        );
        if is_from_outside
            && self.checkpoint_state.ended_well()
            && self.phase == Phase::Planning
            && !self.checkpoint_state.is_node_gone()
        {
            Outcome::Drained
        } else {
            outcome
        }
    }

    /// An earlier process had ended this drain. What ended well is never rolled back; what did not was rolled back by then,
    /// unless this process has begun again.
    fn was_over(&self) -> bool {
        self.checkpoint_state.ended_well() || self.was_rolled_back()
    }

    /// An earlier process had rolled this drain back, and nothing was done since. Its cordon may stand all the same.
    fn was_rolled_back(&self) -> bool {
        let untouched = self.phase == Phase::Planning;
        untouched && self.resumed == Some(Phase::Finished) && !self.checkpoint_state.ended_well()
    }

    /// An earlier process had ended this drain and kept the node as it was; now the node is to be released.
    fn releases_held_node(&self) -> bool {
        self.was_rolled_back() && self.checkpoint_state.left_held() && self.wants_cordon_lifted()
    }

    /// Begins to undo what was changed, if anything was. A process before this one may have died right after its
    /// cordon, before it was saved elsewhere: only the node shows it.
    pub(super) fn begin_rollback(&mut self) {
        self.end_cordon_ahead();
        if self.may_succeed_another() {
            self.recognize_cordon();
        }
        let had_cordoned = self.resumed.is_some_and(Phase::is_past_cordoning);
        let is_early = matches!(self.phase, Phase::Planning | Phase::Preparing) && !had_cordoned;
        let is_open = self.cluster.node().is_some_and(|node| !node.unschedulable);
        let is_untaken = is_early && is_open && !self.checkpoint_state.is_node_lost();
        self.ending.is_before_cordon = is_untaken || self.ending.is_ahead;
        let is_over = self.was_over() && !self.releases_held_node();
        if self.request.intent == Intent::Uncordon || is_over || !self.has_changed_anything() {
            return;
        }
        self.enter(Phase::RollingBack);
        if self.has_hooks(HookPhase::OnCancel) && self.resumed != Some(Phase::RollingBack) {
            // A process that resumes this after a crash must continue the roll-back, not the drain.
            self.checkpoint_state.change();
        }
    }

    /// Nothing was left behind for this drain, and it has changed nothing: what bears its mark is from a process that
    /// died before any process saw the mark.
    fn may_succeed_another(&self) -> bool {
        self.phase == Phase::Planning && self.request.intent == Intent::Drain && self.resumed.is_none()
    }

    /// It was stopped before there was anything to see.
    pub(super) fn has_ended_unseen(&self) -> bool {
        self.outcome.is_some() && self.may_succeed_another()
    }

    /// The node has not been seen, and it may bear a cordon that this end lifts.
    fn awaits_node(&self) -> bool {
        let seen = self.cluster.node().is_some() || self.checkpoint_state.is_node_gone();
        let hopes = self.now < self.ending.stopped + NEWS_BOUND;
        self.may_succeed_another() && !seen && hopes && self.wants_cordon_lifted()
    }

    pub(super) fn check_deadline(&mut self) {
        if self.outcome.is_none() && self.request.deadline.is_some_and(|deadline| self.now >= deadline) {
            self.note_volumes_left();
            let (remaining, held_up) = (self.remaining(), self.held_up());
            self.stop(Outcome::DeadlineExceeded { remaining, held_up });
        }
    }

    /// There may be something to roll back.
    fn has_changed_anything(&self) -> bool {
        let resumed = self.resumed.is_some_and(Phase::is_past_planning);
        let may_have_hooked = !self.checkpoint_state.recalled().is_empty() && self.cluster.node().is_some();
        let hooked = self.hooks.any_ran() || may_have_hooked;
        resumed
            || hooked
            || self.checkpoint_state.is_on_node()
            || self.outbox.writes()
            || self.phase.is_past_cordoning()
    }

    /// The drain ends before its own cordon: the one that was made ahead of it is to be lifted. A process that resumes may
    /// see it only while it rolls back.
    fn end_cordon_ahead(&mut self) {
        let is_drain = self.request.intent == Intent::Drain && !self.checkpoint_state.is_node_lost();
        if is_drain && self.is_cordoned_ahead() {
            self.cordon.find(Cordon::Ours);
            self.ending.is_ahead = true;
            self.ending.is_before_cordon = true;
        }
    }

    /// Runs the cancel hooks for a bounded time.
    pub(super) fn roll_back(&mut self) {
        self.end_cordon_ahead();
        if self.now < self.hooks_end() {
            let steps_run = self.outbox.steps().any(|key| key.phase != HookPhase::OnCancel);
            if steps_run || self.is_cordoning() || !self.knows_node() {
                return;
            }
            if !self.gate(HookPhase::OnCancel, &Subject::Node).is_open() {
                return;
            }
        }
        self.finalize();
    }

    /// Makes the last write of the node and finishes.
    pub(super) fn finalize(&mut self) {
        if self.awaits_node() {
            return;
        }
        let closing = *self.ending.closing.get_or_insert(self.now);
        self.take_raises_back();
        if self.awaits_take_backs(closing) {
            return;
        }
        self.leave_raises();
        if self.checkpoint_state.is_node_gone() || self.now >= self.writes_end(closing) {
            self.finish();
            return;
        }
        if self.outbox.writes() || !self.knows_node() || !self.knows_cordon(closing) {
            return;
        }
        let is_cordon_ours = self.cordon.is_ours() && self.cluster.is_cordoned();
        let leaves_record = !self.to_undo().is_empty();
        // The mark stays with the cordon, so that a later uncordon knows it.
        let mark_stays = is_cordon_ours && self.checkpoint_state.is_on_node() && !self.ending.final_written;
        if is_cordon_ours && self.lifts_cordon() {
            let node = self.cluster.node_uid().filter(|_| leaves_record).cloned();
            self.push_uncordon(node.map(|node| self.last_checkpoint(node, false)));
        } else if mark_stays || (leaves_record && self.has_changed_anything() && !self.is_recorded()) {
            if let Some(node) = self.node_to_write() {
                self.push_save(self.last_checkpoint(node, is_cordon_ours));
            }
        } else if !is_cordon_ours && !leaves_record && self.has_mark() {
            self.push_forget();
        } else {
            self.finish();
        }
    }

    /// What policies have still to undo is on the node as it is now.
    fn is_recorded(&self) -> bool {
        let mark = self.cluster.node().and_then(|node| node.checkpoint.as_ref());
        mark.is_some_and(|mark| !mark.is_under_way() && mark.to_undo == self.to_undo())
    }

    /// What is on the node is known, or nothing of ours is.
    fn knows_node(&self) -> bool {
        self.cluster.node().is_some()
            || self.checkpoint_state.is_node_gone()
            || !self.checkpoint_state.is_on_node()
    }

    /// A cordon whose answer was lost may stand all the same: the watch shows it soon.
    fn knows_cordon(&self, closing: Time) -> bool {
        !self.cordon.is_unsure() || self.now >= closing + NEWS_BOUND
    }

    /// The outcome asks for our own cordon to be lifted. One that an earlier drain left stays.
    fn lifts_cordon(&self) -> bool {
        let node = self.cluster.node().and_then(|node| node.checkpoint.as_ref());
        let is_marked = node.is_some_and(|mark| mark.own_cordon);
        let puts_back = self.phase == Phase::RollingBack || self.was_rolled_back() || self.ending.is_ahead;
        self.wants_cordon_lifted() && is_marked && !self.cordon.is_inherited() && puts_back
    }

    /// A drain that ends like this takes its cordon back.
    fn wants_cordon_lifted(&self) -> bool {
        match &self.outcome {
            None | Some(Outcome::Drained | Outcome::Uncordoned { .. }) => false,
            Some(Outcome::Cancelled { .. }) => true,
            Some(_) => !self.keeps_node(),
        }
    }

    /// A failure leaves the cordon. Before there is one, nothing is kept: the node takes pods.
    pub(super) fn keeps_node(&self) -> bool {
        let configured = !self.request.settings.uncordon_on_failure && !self.ending.is_before_cordon;
        self.checkpoint_state.held().unwrap_or(configured)
    }

    /// The drain ended without being done and its cordon stays: policies are to keep what they changed.
    pub fn held(&self) -> bool {
        self.phase == Phase::RollingBack && !self.wants_cordon_lifted()
    }

    /// A checkpoint is on the node that is not needed any more.
    fn has_mark(&self) -> bool {
        let left = || self.cluster.node().is_some_and(|node| node.checkpoint.is_some());
        self.checkpoint_state.is_on_node()
            || (self.phase == Phase::Uncordoning && self.uncordon.is_lifted() && left())
    }

    fn is_cordoning(&self) -> bool {
        self.outbox
            .write_under_way()
            .is_some_and(|write| matches!(write, Write::Cordon { .. }))
    }

    fn finish(&mut self) {
        self.enter(Phase::Finished);
        self.outbox.close();
        self.measure();
        if let Some(outcome) = self.outcome.clone() {
            let summary = self.summary();
            self.outbox.notify(Notice::Finished { outcome, summary });
        }
    }

    /// A drain whose deadline had passed before it began is over before it is told what is left, which its end names.
    pub(super) fn tell_end_again(&mut self) {
        if let (Some(outcome), true) = (self.outcome.clone(), self.phase.is_last()) {
            let summary = self.summary();
            self.outbox.replace_end(Notice::Finished { outcome, summary });
        }
    }

    /// The node, or our place on it, is not there any more: nothing can be written.
    pub(super) fn node_lost(&mut self) {
        let known = self.cluster.node_uid().is_some();
        self.checkpoint_state.lose_node();
        let node = &self.request.node;
        let outcome = if known {
            Outcome::Lost {
                reason: format!("node {node} was deleted or made anew"),
            }
        } else {
            Outcome::Failed {
                message: format!("there is no node {node}"),
            }
        };
        self.stop(outcome);
    }

    fn hooks_end(&self) -> Time {
        self.ending.stopped + HOOKS_BOUND
    }

    /// Until the deadline if that is far, and in any case long enough for a try or two.
    pub(super) fn writes_end(&self, closing: Time) -> Time {
        let patient = closing + PATIENCE;
        let deadline = self
            .request
            .deadline
            .map_or(patient, |deadline| deadline.min(patient));
        deadline.max(closing + WRITES_BOUND)
    }

    /// When the drain is stopped unless it has ended.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.request.deadline.filter(|_| self.outcome.is_none())
    }

    /// When the cancel hooks are no longer waited for.
    pub(super) fn rollback_hooks_end(&self) -> Option<Time> {
        (self.phase == Phase::RollingBack).then(|| self.hooks_end())
    }

    /// When the last write is no longer tried.
    pub(super) fn last_write_ends(&self) -> Option<Time> {
        self.ending.closing.map(|closing| self.writes_end(closing))
    }

    /// When news of an unsure cordon are no longer waited for.
    pub(super) fn cordon_news_end(&self) -> Option<Time> {
        let closing = self.ending.closing.filter(|_| self.cordon.is_unsure());
        closing.map(|closing| closing + NEWS_BOUND)
    }

    /// When news of a node that was never seen are no longer waited for.
    pub(super) fn node_news_end(&self) -> Option<Time> {
        self.awaits_node().then(|| self.ending.stopped + NEWS_BOUND)
    }
}
