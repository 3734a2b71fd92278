//! Handles the results of actions.

use std::time::Duration;

use scupper_api::ClaimStatus;
use scupper_engine::Time;

use super::{
    ActionResult, Backoff, ClaimMachine, ClaimNotice, CurrentEvent, FIRST_BACKOFF, LONGEST_BACKOFF,
    RECHECK_AFTER, RECHECK_OTHERS_AFTER,
};
use crate::slm::VersionedEvent;
use crate::slm::call::Reply;
use crate::slm::self_claim::api::{ClaimError, EventUpdate};
use crate::slm::self_claim::rules::{ClaimAction, NextStep};

impl ClaimMachine {
    /// Handles the result of an action.
    pub(in crate::slm) fn handle_done(&mut self, done: ActionResult, now: Time) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        match done {
            ActionResult::Read(Ok(snapshot)) => {
                if snapshot
                    .event
                    .as_ref()
                    .is_some_and(|seen| seen.event.uid != current.uid)
                {
                    // An older event of the same name: the watch has not shown its deletion yet.
                    self.forget(&current.uid);
                    return;
                }
                current.snapshot = snapshot;
                self.decide_next(current, now);
            }
            ActionResult::Written(Ok(seen)) => {
                self.notify(&current, &seen.event.claim);
                self.backoffs.remove(&current.uid);
                self.events.insert(current.uid.clone(), seen.event.clone());
                self.note_finished(now);
                current.snapshot.event = Some(seen);
                self.decide_next(current, now);
            }
            ActionResult::Set(Ok(())) => {
                if let ClaimAction::SetCondition(condition) = &current.action {
                    current.snapshot.condition = condition.clone();
                }
                self.condition_of = Some(current.uid.clone());
                self.backoffs.remove(&current.uid);
                self.decide_next(current, now);
            }
            ActionResult::Deleted(Ok(())) => self.forget(&current.uid),
            ActionResult::Answered(reply) => self.answered(current, reply, now),
            ActionResult::Set(Err(ClaimError::Forbidden(why))) => self.forbidden(current, why, now),
            ActionResult::Set(Err(ClaimError::Refused(why))) => self.fail(current, why, now),
            ActionResult::Read(Err(error))
            | ActionResult::Written(Err(error))
            | ActionResult::Deleted(Err(error))
            | ActionResult::Set(Err(error)) => self.retry(current, error.to_string(), now),
        }
    }

    /// Decides again after every step, on the knowledge at that time.
    fn decide_next(&mut self, current: CurrentEvent, now: Time) {
        let foreign_condition = self.condition_of.as_ref().is_some_and(|uid| *uid != current.uid);
        match self.rules.next(&current.snapshot, foreign_condition, now) {
            NextStep::Do(ClaimAction::Delete(seen)) if self.is_retained(&seen, now) => {
                self.back_off(&current, RECHECK_AFTER, String::new(), now);
            }
            NextStep::Do(action) => self.proceed(current, action),
            NextStep::Gone => self.forget(&current.uid),
            NextStep::NotOurs => self.back_off(&current, RECHECK_OTHERS_AFTER, String::new(), now),
            NextStep::Wait(why) => self.back_off(&current, RECHECK_AFTER, why, now),
        }
    }

    fn is_retained(&self, seen: &VersionedEvent, now: Time) -> bool {
        self.retained_until(&seen.event).is_some_and(|until| now < until)
    }

    fn answered(&mut self, current: CurrentEvent, reply: Option<Reply>, now: Time) {
        let (Some(reply), Some(seen)) = (reply, &current.snapshot.event) else {
            return self.back_off(&current, RECHECK_AFTER, "the trigger has stopped".to_owned(), now);
        };
        if let Reply::Error(why) = &reply {
            return self.fail(current, why.clone(), now);
        }
        match self.rules.answered(seen, &reply) {
            Some(NextStep::Do(action)) => self.proceed(current, action),
            Some(NextStep::Wait(_) | NextStep::NotOurs | NextStep::Gone) | None => {
                self.back_off(&current, RECHECK_AFTER, String::new(), now);
            }
        }
    }

    /// Handles a refusal that may be temporary: the event fails only after a long refusal.
    fn forbidden(&mut self, current: CurrentEvent, why: String, now: Time) {
        let since = self
            .backoffs
            .get(&current.uid)
            .and_then(|backoff| backoff.forbidden_since);
        let since = since.unwrap_or(now);
        let last = since + self.forbidden_timeout;
        if now >= last {
            return self.fail(current, why, now);
        }
        let uid = current.uid.clone();
        self.retry(current, why, now);
        if let Some(backoff) = self.backoffs.get_mut(&uid) {
            backoff.forbidden_since = Some(since);
            backoff.until = backoff.until.min(last);
        }
    }

    /// Fails the event permanently.
    fn fail(&mut self, current: CurrentEvent, why: String, now: Time) {
        let seen = current.snapshot.event.as_ref();
        let Some(seen) = seen.filter(|seen| seen.event.claim == ClaimStatus::Claimed) else {
            // Not claimed yet, so no claim needs to be ended.
            return self.retry(current, why, now);
        };
        let event = seen.event.name.clone();
        if let NextStep::Do(action) = self.rules.finish(seen, ClaimStatus::Failed) {
            self.notices.push_back(ClaimNotice::Failed { event, why });
            self.proceed(current, action);
        }
    }

    /// Starts this action next.
    fn proceed(&mut self, current: CurrentEvent, action: ClaimAction) {
        self.current = Some(CurrentEvent {
            action,
            in_flight: false,
            ..current
        });
    }

    /// Leaves the event alone, longer each time.
    fn retry(&mut self, current: CurrentEvent, why: String, now: Time) {
        let pause = self
            .backoffs
            .get(&current.uid)
            .filter(|backoff| !backoff.ends_on_change)
            .map_or(FIRST_BACKOFF, |backoff| backoff.pause);
        self.set_backoff(&current, why, |why| Backoff {
            until: now + pause,
            pause: pause.saturating_mul(2).min(LONGEST_BACKOFF),
            ends_on_change: false,
            forbidden_since: None,
            why,
        });
    }

    /// Leaves the event alone until something changes.
    fn back_off(&mut self, current: &CurrentEvent, span: Duration, why: String, now: Time) {
        let until = if current.woken { now } else { now + span };
        self.set_backoff(current, why, |why| Backoff {
            until,
            pause: FIRST_BACKOFF,
            ends_on_change: true,
            forbidden_since: None,
            why,
        });
    }

    fn set_backoff(&mut self, current: &CurrentEvent, why: String, backoff: impl FnOnce(String) -> Backoff) {
        let Some(event) = self.events.get(&current.uid).map(|event| event.name.clone()) else {
            return;
        };
        let known = self
            .backoffs
            .get(&current.uid)
            .is_some_and(|backoff| backoff.why == why);
        if !why.is_empty() && !known {
            let why = why.clone();
            self.notices.push_back(ClaimNotice::Postponed { event, why });
        }
        self.backoffs.insert(current.uid.clone(), backoff(why));
    }

    fn notify(&mut self, current: &CurrentEvent, claim: &ClaimStatus) {
        let ClaimAction::Write(seen, EventUpdate::Claim { .. } | EventUpdate::Finish { .. }) =
            &current.action
        else {
            return;
        };
        self.notices.push_back(ClaimNotice::Became {
            event: seen.event.name.clone(),
            claim: claim.clone(),
        });
    }
}
