//! Fresh lists: when the watch owes an answer, and before the drain is called done.

use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::backoff::Backoff;
use super::outbox::Job;
use super::plan_state::State;
use crate::{Answer, HookPhase, Notice, Outcome, Phase, Pod, Subject, Task, Time};

/// When the next list may be asked for.
#[derive(Debug, Default)]
pub(super) struct Lister {
    pub(super) retry_at: Time,
    tries: u32,
}

/// A list that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListRequest {
    /// What had been heard by then.
    mark: u64,
    /// The round of verifying that it is for.
    round: Option<u32>,
    asked: Time,
}

impl Drain {
    /// "Drained" is said only after a fresh list without any pod that was to leave, and once more after the last
    /// hooks, which may take long.
    pub(super) fn verify(&mut self) {
        if !self.is_node_empty() {
            self.verified = false;
            self.enter(Phase::Evicting);
            return;
        }
        if !self.cluster.is_cordoned() {
            return;
        }
        if !self.verified {
            self.list(Some(self.verify_round));
            return;
        }
        if !self.gate(HookPhase::AfterDrain, &Subject::Node).is_open() {
            self.list_after_hooks = true;
            return;
        }
        if self.list_after_hooks {
            self.list_after_hooks = false;
            self.verified = false;
            self.list(Some(self.verify_round));
            return;
        }
        self.outcome = Some(Outcome::Drained);
        self.finalize();
    }

    /// Lists when a pod should have been heard of and was not.
    pub(super) fn list_when_overdue(&mut self) {
        if self.lists_due().any(|time| time <= self.now) {
            self.list(None);
        }
    }

    /// When silence about a pod becomes doubtful.
    pub(super) fn lists_due(&self) -> impl Iterator<Item = Time> {
        self.plan_state
            .targets()
            .filter_map(|(uid, target)| match &target.state {
                State::AwaitingDeletion(awaiting) => {
                    let expected = self.cluster.pod(uid).is_some_and(|pod| awaiting.expects(pod));
                    (!expected).then_some(awaiting.list_at)
                }
                _ => None,
            })
    }

    fn list(&mut self, round: Option<u32>) {
        if !self.outbox.lists() && self.now >= self.lister.retry_at {
            let request = ListRequest {
                mark: self.cluster.mark(),
                round,
                asked: self.now,
            };
            self.outbox.push(Task::ListPods, Job::List(request));
        }
    }

    /// A list was answered.
    pub(super) fn list_answered(&mut self, request: ListRequest, answer: Answer) {
        match answer {
            Answer::Pods(pods) => self.listed(pods, request),
            Answer::Unavailable { message } | Answer::Rejected { message } => self.list_failed(message),
            _ => self.list_failed(String::from("the answer was not a list")),
        }
    }

    fn listed(&mut self, pods: Vec<Pod>, request: ListRequest) {
        self.lister = Lister::default();
        self.cluster.apply_list(pods, request.mark);
        self.recheck(request.asked);
        let counts = request.round == Some(self.verify_round) && self.phase == Phase::Verifying;
        self.verified = counts && self.is_node_empty();
    }

    fn list_failed(&mut self, message: String) {
        self.lister.retry_at = Backoff::UNREACHABLE.after(self.now, self.lister.tries, &self.request.id);
        self.lister.tries = self.lister.tries.saturating_add(1);
        let task = String::from(Task::ListPods.name());
        self.outbox.notify(Notice::Retrying { task, message });
    }
}
