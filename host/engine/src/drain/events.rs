//! The state change for each event. Its consequences are decided afterwards, from the state.

use alloc::collections::BTreeSet;
use alloc::string::String;

use super::Drain;
use super::answers::charged;
use super::budget_tracker::BudgetKey;
use super::node_state::NodeNews;
use super::outbox::Job;
use super::raising::Raises;
use super::replies;
use crate::{Answer, Budget, CommandId, Event, Intent, Node, Outcome, Phase, PolicyInfo};

/// Why a drain ends that an annotation of its node cancels.
const CANCELLED: &str = "stopped by scupper cancel";

impl Drain {
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Node(node) => self.apply_node(node),
            Event::Pods(pods) => self.cluster.apply_pods(pods),
            Event::PodApplied(pod) => self.cluster.apply_pod(pod),
            Event::PodDeleted(uid) => self.cluster.delete_pod(uid),
            Event::Budgets(budgets) => self.apply_budgets(budgets),
            Event::BudgetApplied(budget) => {
                let old = self.cluster.apply_budget(budget.clone());
                self.budget_changed(old.as_ref(), &budget);
            }
            Event::BudgetDeleted { namespace, name } => {
                let old = self.cluster.delete_budget(&BudgetKey::new(&namespace, &name));
                old.iter().for_each(|old| self.budget_deleted(old));
            }
            Event::Volumes(volumes) => self.apply_volumes(volumes),
            Event::Answer(id, answer) => self.apply_answer(id, answer),
            Event::Deadline(deadline) => self.request.deadline = deadline,
            Event::Cancel { reason } => self.stop(Outcome::Cancelled { reason }),
            Event::Lost { reason } => self.stop(Outcome::Lost { reason }),
            Event::Pause => self.paused = true,
            Event::EvictionLimit(limit) => self.eviction_limit = limit,
            Event::HookDue { policy } => self.hooks.wake(&policy, self.now),
        }
    }

    fn apply_node(&mut self, node: Option<Node>) {
        let first = self.cluster.node().is_none();
        let cancelled = node.as_ref().and_then(|node| node.cancel.clone());
        let news = self.cluster.apply_node(node);
        if first {
            self.find_drained();
            self.select_policies();
        }
        match news {
            NodeNews::Old => {}
            // The drain had ended before it knew what it would leave behind.
            NodeNews::Fresh if first && self.has_ended_unseen() => self.begin_rollback(),
            NodeNews::Fresh => self.settle_cordon(),
            NodeNews::Gone => self.node_lost(),
            NodeNews::Uncordoned => {
                self.cordon_vanished();
                self.settle_cordon();
            }
        }
        if cancelled.is_some_and(|id| id == self.request.id) {
            let reason = String::from(CANCELLED);
            self.stop(Outcome::Cancelled { reason });
        }
        self.note_cordon();
    }

    /// Policies for other nodes have no part in this drain. It is settled once, so that a change of a label does not
    /// take away half a chain. A policy whose hooks have begun in an earlier process stays in it, and so does one that must
    /// undo something at this uncordon.
    fn select_policies(&mut self) {
        let Some(node) = self.cluster.node() else {
            return;
        };
        let hooks = self.hooks.keys();
        let mut begun: BTreeSet<String> = hooks.map(|key| key.policy.clone()).collect();
        if self.request.intent == Intent::Uncordon {
            begun.extend(self.checkpoint_state.to_undo().keys().cloned());
        }
        let takes_part = |policy: &PolicyInfo| policy.is_for(node) || begun.contains(&policy.name);
        self.request.policies.retain(takes_part);
    }

    /// What earlier drains have left is looked at before this one changes anything; a process before this one has told
    /// of it in the mark.
    fn find_drained(&mut self) {
        if self.resumed.is_none()
            && let Some(mark) = self.cluster.node().and_then(|node| node.checkpoint.as_ref())
        {
            self.raises = Raises::restored(mark.raised.clone(), self.now);
            self.find_to_undo();
        }
        if self.resumed.is_none() && self.request.intent == Intent::Drain {
            let drained = self.cluster.node().is_some_and(Node::is_drained_by_us);
            self.checkpoint_state.set_found_drained(drained);
        }
    }

    /// A cordon that comes back later is not ours.
    fn cordon_vanished(&mut self) {
        if self.phase.needs_cordon() && self.outcome.is_none() {
            self.uncordoned_by_others();
        } else if self.cordon.is_ours() {
            self.cordon.lift();
            if self.phase == Phase::Planning {
                self.checkpoint_state.change();
            }
        }
    }

    fn apply_budgets(&mut self, budgets: alloc::vec::Vec<Budget>) {
        let mut old = self.cluster.apply_budgets(budgets);
        let new: alloc::vec::Vec<_> = self
            .cluster
            .all_budgets()
            .map(|(key, budget)| (key.clone(), budget.clone()))
            .collect();
        for (key, budget) in new {
            self.budget_changed(old.remove(&key).as_ref(), &budget);
        }
        old.values().for_each(|old| self.budget_deleted(old));
    }

    /// An answer that nothing waits for is ignored.
    fn apply_answer(&mut self, id: CommandId, answer: Answer) {
        match self.outbox.answered(id) {
            None => {}
            Some(Job::Plan) => self.plan_answered(replies::to_plan(answer)),
            Some(Job::Step(key)) => self.step_answered(key, replies::to_step(answer)),
            Some(Job::Write(write)) => self.write_answered(write, replies::to_write(answer)),
            Some(Job::Remove {
                uid,
                by,
                request,
                reserved,
                ..
            }) => {
                let answer = replies::to_eviction(answer);
                self.release(reserved, charged(&answer));
                self.removal_answered(&uid, by, request, answer);
            }
            Some(Job::List(request)) => self.list_answered(request, replies::to_list(answer)),
            Some(Job::ChooseSurges) => self.surges_chosen(replies::to_surges(answer)),
            Some(Job::Surge(deployment)) => self.surge_answered(&deployment, replies::to_surge(answer)),
            Some(Job::TakeBack(deployment)) => {
                self.take_back_answered(&deployment, replies::to_write(answer));
            }
            Some(Job::Volumes { mark }) => self.volumes_answered(mark, replies::to_volumes(answer)),
        }
    }
}
