//! The meaning of an answer to an eviction or a deletion for the pod, and when to ask again.

use core::time::Duration;

use alloc::string::String;

use super::Drain;
use super::backoff::Backoff;
use super::budget_tracker::{BudgetKey, Charged};
use super::eviction_target::{Again, Answered};
use crate::{Budget, EvictAnswer, Notice, Reason, Removal, Time, Uid};

/// The API server may ask us to wait for at most this.
const LONGEST: Duration = Duration::from_secs(300);

impl Drain {
    /// An eviction or a deletion was answered.
    pub(super) fn removal_answered(
        &mut self,
        uid: &Uid,
        by: Removal,
        reserved: Option<BudgetKey>,
        answer: EvictAnswer,
    ) {
        let charged = match &answer {
            EvictAnswer::BudgetExhausted { .. } => Charged::NothingLeft,
            // It may have happened, and a precondition that fails has spent the budget all the same.
            EvictAnswer::Accepted | EvictAnswer::Unreachable { .. } | EvictAnswer::UidMismatch { .. } => {
                Charged::Yes
            }
            _ => Charged::No,
        };
        self.release(reserved, charged);
        match answer {
            EvictAnswer::Accepted => self.accepted(uid, by),
            EvictAnswer::NotFound => self.await_deletion(uid, Answered::NotFound),
            EvictAnswer::UidMismatch { .. } => self.await_deletion(uid, Answered::UidMismatch),
            EvictAnswer::NamespaceTerminating { .. } => {
                self.await_deletion(uid, Answered::NamespaceTerminating);
            }
            EvictAnswer::BudgetExhausted { budget, message } => {
                self.outbox.count_budget_refusal();
                let reason = Reason::BudgetExhausted { budget, message };
                self.refused(uid, reason, Again::After(Backoff::BUDGET));
            }
            EvictAnswer::BudgetNotObserved { message, retry_after } => {
                self.outbox.count_budget_refusal();
                let again = Again::At(self.now + retry_after.min(LONGEST));
                self.refused(uid, Reason::BudgetNotObserved { message }, again);
            }
            EvictAnswer::Throttled { message, retry_after } => self.throttled(uid, message, retry_after),
            EvictAnswer::MoreThanOneBudget { message } => {
                self.refused(
                    uid,
                    Reason::MoreThanOneBudget { message },
                    Again::After(Backoff::REFUSAL),
                );
            }
            EvictAnswer::Forbidden { message } => {
                self.refused(uid, Reason::Forbidden { message }, Again::After(Backoff::REFUSAL));
            }
            EvictAnswer::Refused {
                code,
                message,
                retry_after,
            } => {
                let again = retry_after.map_or(Again::After(Backoff::REFUSAL), |wait| {
                    Again::At(self.now + wait.min(LONGEST))
                });
                self.refused(uid, Reason::EvictionRefused { code, message }, again);
            }
            EvictAnswer::Unreachable { message } => {
                self.refused(
                    uid,
                    Reason::Unreachable { message },
                    Again::After(Backoff::UNREACHABLE),
                );
            }
        }
    }

    fn accepted(&mut self, uid: &Uid, by: Removal) {
        let Some(target) = self.plan_state.target_mut(uid) else {
            return;
        };
        self.throttle.ease();
        target.accept(self.now);
        let pod = target.pod().clone();
        if !self.report_forced(uid) {
            self.outbox.notify(Notice::PodLeaving { pod, by });
        }
    }

    fn await_deletion(&mut self, uid: &Uid, answered: Answered) {
        if let Some(target) = self.plan_state.target_mut(uid) {
            target.await_deletion(answered, self.now);
        }
    }

    fn refused(&mut self, uid: &Uid, reason: Reason, again: Again) {
        if let Some(target) = self.plan_state.target_mut(uid) {
            target.refuse(reason, again, self.now);
        }
    }

    fn throttled(&mut self, uid: &Uid, message: String, retry_after: Option<Duration>) {
        let wait = retry_after.map(|wait| wait.min(LONGEST));
        let until = self.throttle.begin(self.now, wait, message.clone(), &uid.0);
        self.refused(uid, Reason::Throttled { message }, Again::At(until));
    }

    /// A budget has changed: the pods that it held up may be asked for at once, as many as it allows.
    pub(super) fn budget_changed(&mut self, old: Option<&Budget>, new: &Budget) {
        if old == Some(new) {
            return;
        }
        self.budget_tracker.update(old, new, self.now);
        if !new.observed || new.disruptions_allowed <= 0 {
            return;
        }
        let is_selected = |uid| self.cluster.pod(uid).is_some_and(|pod| new.selects(pod));
        for (uid, target) in self.plan_state.targets_mut() {
            if target.was_refused_by_budget() && is_selected(uid) {
                target.ask_at_once(self.now);
            }
        }
    }

    /// A list that was asked for at `asked` may still show pods that should be gone or terminating: then it is not the
    /// watch that is slow.
    pub(super) fn recheck(&mut self, asked: Time) {
        for (uid, target) in self.plan_state.targets_mut() {
            if let Some(pod) = self.cluster.pod(uid) {
                target.recheck(pod, asked, self.now);
            }
        }
    }
}
