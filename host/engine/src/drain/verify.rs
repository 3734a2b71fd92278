//! Fresh lists: when the watch is silent for too long, and before the drain is reported as done.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem::take;

use super::Drain;
use super::backoff::Backoff;
use super::outbox::Job;
use super::replies::ListReply;
use crate::{HookPhase, Notice, Outcome, Phase, Pod, Subject, Task, Time};

/// What lists have shown.
#[derive(Debug, Default)]
pub(super) struct Verification {
    /// How often the node has looked empty; a list counts for the round it was asked for in.
    round: u32,
    /// A fresh list has shown that every pod is gone.
    is_done: bool,
    /// Hooks have run since then.
    hooks_ran: bool,
    lister: Lister,
}

/// When the next list may be asked for.
#[derive(Debug, Default)]
struct Lister {
    retry_at: Time,
    tries: u32,
}

impl Verification {
    /// The node looks empty: a list must show it.
    pub(super) const fn begin(&mut self) {
        self.is_done = false;
        self.round = self.round.wrapping_add(1);
    }

    pub(super) const fn list_retry_at(&self) -> Time {
        self.lister.retry_at
    }
}

/// A list that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListRequest {
    /// How many events about pods had come by then.
    mark: u64,
    /// The round of verifying that it is for.
    round: Option<u32>,
    asked: Time,
}

impl Drain {
    /// Whether a fresh list has shown no pod that was to leave, and none has come since. Otherwise asks for a list, or
    /// evicts again.
    pub(super) fn is_shown_empty(&mut self) -> bool {
        if !self.is_node_empty() {
            self.verification.is_done = false;
            self.enter(Phase::Evicting);
            return false;
        }
        if !self.cluster.is_cordoned() {
            return false;
        }
        if !self.verification.is_done {
            self.list(Some(self.verification.round));
            return false;
        }
        true
    }

    /// The outcome is `Drained` only after a fresh list without any pod that was to leave. The last hooks may take long, so
    /// another one follows them.
    pub(super) fn verify(&mut self) {
        if !self.is_shown_empty() {
            return;
        }
        if !self.gate(HookPhase::AfterDrain, &Subject::Node).is_open() {
            self.verification.hooks_ran = true;
            return;
        }
        if take(&mut self.verification.hooks_ran) {
            self.verification.is_done = false;
            self.list(Some(self.verification.round));
            return;
        }
        self.outcome = Some(Outcome::Drained);
        self.finalize();
    }

    /// Lists when the watch should have reported on a pod and has not.
    pub(super) fn list_when_overdue(&mut self) {
        if self.lists_due().any(|time| time <= self.now) {
            self.list(None);
        }
    }

    /// When the watch should have reported on each pod.
    pub(super) fn lists_due(&self) -> impl Iterator<Item = Time> {
        let targets = self.plan_state.targets_with(self.cluster.pods());
        targets.filter_map(|(target, pod)| target.list_due(pod))
    }

    fn list(&mut self, round: Option<u32>) {
        if !self.outbox.lists() && self.now >= self.verification.lister.retry_at {
            let request = ListRequest {
                mark: self.cluster.mark(),
                round,
                asked: self.now,
            };
            self.outbox.push(Task::ListPods, Job::List(request));
        }
    }

    /// A list was answered.
    pub(super) fn list_answered(&mut self, request: ListRequest, reply: ListReply) {
        match reply {
            ListReply::Pods(pods) => self.listed(pods, request),
            ListReply::Failed { message } => self.list_failed(message),
        }
    }

    fn listed(&mut self, pods: Vec<Pod>, request: ListRequest) {
        self.verification.lister = Lister::default();
        self.cluster.apply_list(pods, request.mark);
        self.recheck(request.asked);
        let is_wanted = matches!(self.phase, Phase::Detaching | Phase::Verifying);
        let counts = is_wanted && request.round == Some(self.verification.round);
        self.verification.is_done = counts && self.is_node_empty();
    }

    fn list_failed(&mut self, message: String) {
        let lister = &mut self.verification.lister;
        lister.retry_at = Backoff::UNREACHABLE.after(self.now, lister.tries, &self.request.id);
        lister.tries = lister.tries.saturating_add(1);
        let task = String::from(Task::ListPods.name());
        self.outbox.notify(Notice::Retrying { task, message });
    }
}
