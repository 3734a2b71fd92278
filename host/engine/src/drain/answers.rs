//! The meaning of an answer to an eviction or a deletion for the pod, and when to ask again.

use core::time::Duration;

use alloc::string::String;

use super::Drain;
use super::backoff::Backoff;
use super::budget_tracker::{BudgetKey, Charged};
use super::eviction_target::{Again, Answered, EvictionTarget};
use crate::{Budget, EvictAnswer, Notice, Pod, Reason, Removal, Time, Uid};

/// The API server may ask us to wait for at most this.
const LONGEST: Duration = Duration::from_secs(300);

/// Whether an eviction with this answer has spent its budget.
pub(super) const fn charged(answer: &EvictAnswer) -> Charged {
    match answer {
        EvictAnswer::BudgetExhausted { .. } => Charged::NothingLeft,
        // It may have happened, and a precondition that fails has spent the budget all the same.
        EvictAnswer::Accepted | EvictAnswer::Unreachable { .. } | EvictAnswer::UidMismatch { .. } => {
            Charged::Yes
        }
        _ => Charged::No,
    }
}

impl Drain {
    /// An eviction or a deletion was answered.
    pub(super) fn removal_answered(&mut self, uid: &Uid, by: Removal, request: u32, answer: EvictAnswer) {
        let target = self.plan_state.target(uid);
        if target.is_some_and(|target| target.is_overtaken(request)) {
            self.overtaken_answered(uid, answer);
            return;
        }
        match answer {
            EvictAnswer::Accepted => self.accepted(uid, by),
            EvictAnswer::NotFound => self.await_deletion(uid, Answered::NotFound),
            EvictAnswer::UidMismatch { .. } => self.await_deletion(uid, Answered::UidMismatch),
            EvictAnswer::NamespaceTerminating { .. } => {
                self.await_deletion(uid, Answered::NamespaceTerminating);
            }
            EvictAnswer::BudgetExhausted { budget, message } => {
                self.outbox.totals_mut().budget_refusals += 1;
                let reason = Reason::BudgetExhausted { budget, message };
                self.refused(uid, reason, Again::After(Backoff::BUDGET));
                self.want_surge(uid);
            }
            EvictAnswer::BudgetNotObserved { message, retry_after } => {
                self.outbox.totals_mut().budget_refusals += 1;
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
            EvictAnswer::Forbidden { message } => self.removal_forbidden(uid, message),
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

    /// An eviction was answered whose pod the drain has deleted meanwhile.
    fn overtaken_answered(&mut self, uid: &Uid, answer: EvictAnswer) {
        let is_accepted = answer == EvictAnswer::Accepted;
        let may_have_happened = is_accepted || matches!(answer, EvictAnswer::Unreachable { .. });
        match answer {
            EvictAnswer::Accepted => self.throttle.ease(),
            EvictAnswer::Throttled { message, retry_after } => {
                self.throttle(uid, message, retry_after);
            }
            EvictAnswer::BudgetExhausted { .. } | EvictAnswer::BudgetNotObserved { .. } => {
                self.outbox.totals_mut().budget_refusals += 1;
            }
            _ => {}
        }
        if let Some(target) = self.plan_state.target_mut(uid) {
            target.end_overtaken(may_have_happened);
            if is_accepted && target.forget_refused_force() {
                self.accepted(uid, Removal::Evict);
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

    pub(super) fn refused(&mut self, uid: &Uid, reason: Reason, again: Again) {
        let forced = self.plan_state.target(uid).and_then(EvictionTarget::forced);
        let again = match (again, self.force_latest().filter(|_| forced.is_some())) {
            (again, None) => again,
            (Again::At(time), Some(latest)) if self.now < latest => Again::At(time.min(latest)),
            // Little time is left.
            (_, Some(_)) => Again::After(Backoff::UNREACHABLE),
        };
        if let Some(target) = self.plan_state.target_mut(uid) {
            target.refuse(reason, again, self.now);
        }
    }

    fn throttled(&mut self, uid: &Uid, message: String, retry_after: Option<Duration>) {
        let until = self.throttle(uid, message.clone(), retry_after);
        self.refused(uid, Reason::Throttled { message }, Again::At(until));
    }

    /// No eviction goes out for this time. Returns its end.
    fn throttle(&mut self, uid: &Uid, message: String, retry_after: Option<Duration>) -> Time {
        let wait = retry_after.map(|wait| wait.min(LONGEST));
        self.throttle.begin(self.now, wait, message, uid.as_str())
    }

    /// A budget has changed.
    pub(super) fn budget_changed(&mut self, old: Option<&Budget>, new: &Budget) {
        if old == Some(new) {
            return;
        }
        if old.is_some_and(|old| old.disruptions_allowed > 0) {
            let changed = BudgetKey::of(new);
            self.surges.renew_raises(self.now, |key| *key == changed);
        }
        self.budget_tracker.update(old, new, self.now);
        self.wake_refused(old, Some(new));
    }

    /// The budget is deleted: it holds no pod any more.
    pub(super) fn budget_deleted(&mut self, old: &Budget) {
        self.wake_refused(Some(old), None);
    }

    /// Pods that were refused because of the budget may be asked for at once, as many as it allows, or all for which it no
    /// longer counts.
    fn wake_refused(&mut self, old: Option<&Budget>, new: Option<&Budget>) {
        let has_room = new.is_some_and(|new| new.observed && new.disruptions_allowed > 0);
        if !has_room && old.is_none() {
            return;
        }
        let selects = |budget: Option<&Budget>, pod: &Pod| budget.is_some_and(|it| it.selects(pod));
        let governs =
            |budget: Option<&Budget>, pod: &Pod| budget.is_some_and(|it| it.selects(pod) && it.governs(pod));
        for (uid, target) in self.plan_state.targets_mut() {
            let wakes = |pod: &Pod| match target.refusal() {
                Some(Reason::MoreThanOneBudget { .. }) => selects(old, pod) && !selects(new, pod),
                _ => {
                    let is_freed = || governs(old, pod) && !governs(new, pod);
                    target.was_refused_by_budget() && ((has_room && selects(new, pod)) || is_freed())
                }
            };
            if self.cluster.pod(uid).is_some_and(wakes) {
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
