//! What an answer to an eviction or a deletion means for the pod, and when it is asked again.

use core::mem::discriminant;

use super::Drain;
use super::backoff::Backoff;
use super::budget_tracker::{BudgetKey, Charged};
use super::plan_state::{Answered, AwaitingDeletion, State};
use crate::{Budget, Duration, EvictAnswer, Notice, Reason, Time, Uid};

/// The watch should tell of an accepted eviction within this.
const SILENCE: Duration = Duration::from_secs(30);
/// The watch should tell of a pod that is gone within this.
const LAG: Duration = Duration::from_secs(1);

/// The API server may ask us to wait for at most this.
const LONGEST: Duration = Duration::from_secs(300);

/// When to ask a pod again.
#[derive(Clone, Copy)]
enum Again {
    After(Backoff),
    At(Time),
}

impl Drain {
    /// An eviction or a deletion was answered.
    pub(super) fn removal_answered(&mut self, uid: &Uid, reserved: Option<BudgetKey>, answer: EvictAnswer) {
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
            EvictAnswer::Accepted => self.accepted(uid),
            EvictAnswer::NotFound => self.await_deletion(uid, Answered::NotFound, LAG),
            EvictAnswer::UidMismatch { .. } => self.await_deletion(uid, Answered::UidMismatch, LAG),
            EvictAnswer::NamespaceTerminating { .. } => {
                self.await_deletion(uid, Answered::NamespaceTerminating, SILENCE)
            }
            EvictAnswer::BudgetExhausted { budget, message } => {
                self.summary.budget_refusals += 1;
                let reason = Reason::BudgetExhausted { budget, message };
                self.refused(uid, reason, Again::After(Backoff::BUDGET));
            }
            EvictAnswer::BudgetNotObserved { message, retry_after } => {
                self.summary.budget_refusals += 1;
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

    fn accepted(&mut self, uid: &Uid) {
        let Some(target) = self.plan_state.target_mut(uid) else {
            return;
        };
        self.throttle.tries = 0;
        target.refusal = None;
        target.tries = 0;
        let pod = target.pod.clone();
        target.budget_since = None;
        self.outbox.notify(Notice::PodLeaving { pod });
        self.await_deletion(uid, Answered::Accepted, SILENCE);
    }

    /// Nothing is left but to wait for the watch.
    fn await_deletion(&mut self, uid: &Uid, answered: Answered, patience: Duration) {
        let now = self.now;
        if let Some(target) = self.plan_state.target_mut(uid) {
            target.state = State::AwaitingDeletion(AwaitingDeletion {
                answered,
                since: now,
                list_at: now + patience,
                lists: 0,
            });
        }
    }

    fn refused(&mut self, uid: &Uid, reason: Reason, again: Again) {
        let now = self.now;
        let Some(target) = self.plan_state.target_mut(uid) else {
            return;
        };
        let same = target
            .refusal
            .as_ref()
            .is_some_and(|last| discriminant(last) == discriminant(&reason));
        // Without an answer it may have happened all the same.
        target.evicted &= matches!(reason, Reason::Unreachable { .. });
        target.tries = if same { target.tries.saturating_add(1) } else { 0 };
        target.not_before = match again {
            Again::After(backoff) => backoff.after(now, target.tries, &uid.0),
            Again::At(time) => time,
        };
        if matches!(
            reason,
            Reason::BudgetExhausted { .. } | Reason::BudgetNotObserved { .. }
        ) {
            target.budget_since.get_or_insert(now);
        } else if !matches!(reason, Reason::Unreachable { .. } | Reason::Throttled { .. }) {
            target.budget_since = None;
        }
        target.refusal = Some(reason);
        target.state = State::Waiting;
    }

    /// Flow control is about all requests, so none goes out until it is over.
    fn throttled(&mut self, uid: &Uid, message: alloc::string::String, retry_after: Option<Duration>) {
        let backoff = Backoff::THROTTLE.after(self.now, self.throttle.tries, &uid.0);
        let until = retry_after.map_or(backoff, |wait| self.now + wait.min(LONGEST));
        if self.now >= self.throttle.until {
            self.throttle.tries = self.throttle.tries.saturating_add(1);
        }
        self.throttle.until = self.throttle.until.max(until);
        self.throttle.message.clone_from(&message);
        self.refused(uid, Reason::Throttled { message }, Again::At(until));
    }

    /// A budget has changed: the pods it held up may be asked at once, as many as it allows.
    pub(super) fn budget_changed(&mut self, old: Option<&Budget>, new: &Budget) {
        if old == Some(new) {
            return;
        }
        self.budget_tracker.update(old, new, self.now);
        if !new.observed || new.disruptions_allowed <= 0 {
            return;
        }
        let cluster = &self.cluster;
        for (uid, target) in self.plan_state.targets_mut() {
            let held = matches!(
                target.refusal,
                Some(Reason::BudgetExhausted { .. } | Reason::BudgetNotObserved { .. })
            );
            if held && cluster.pod(uid).is_some_and(|pod| new.selects(pod)) {
                target.not_before = target.not_before.min(self.now);
                target.tries = 0;
            }
        }
    }

    /// A list that was asked for because of them still shows pods that should be gone or ending: it is not the watch
    /// that is slow.
    pub(super) fn recheck(&mut self, asked: Time) {
        let now = self.now;
        let cluster = &self.cluster;
        for (uid, target) in self.plan_state.targets_mut() {
            let State::AwaitingDeletion(awaiting) = &mut target.state else {
                continue;
            };
            if asked < awaiting.list_at || cluster.pod(uid).is_none_or(|pod| awaiting.expects(pod)) {
                continue;
            }
            awaiting.lists = awaiting.lists.saturating_add(1);
            match awaiting.answered {
                Answered::Accepted | Answered::NotFound => {
                    target.not_before = Backoff::RECHECK.after(now, target.tries, &uid.0);
                    target.tries = target.tries.saturating_add(1);
                    target.state = State::Waiting;
                }
                Answered::UidMismatch => {
                    awaiting.list_at = Backoff::RECHECK.after(now, awaiting.lists, &uid.0)
                }
                Answered::NamespaceTerminating => awaiting.list_at = now + SILENCE,
            }
        }
    }
}
