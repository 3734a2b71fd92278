//! What follows from the end of an action.

use scupper_engine::{Duration, Time};

use super::{Done, FIRST_PAUSE, LONGEST_PAUSE, LOOK_AGAIN, LOOK_AT_OTHERS, Machine, Note, Pass, Rest};
use crate::slm::ClaimStatus;
use crate::slm::claim::Reply;
use crate::slm::self_claim::api::{Change, ClaimError, Claimable};
use crate::slm::self_claim::decide::{Action, Move};

impl Machine {
    /// An action has ended.
    pub(in crate::slm) fn handle_done(&mut self, done: Done, now: Time) {
        let Some(mut pass) = self.pass.take() else {
            return;
        };
        match done {
            Done::Looked(Ok(sight)) => {
                if sight
                    .event
                    .as_ref()
                    .is_some_and(|seen| seen.event.uid != pass.uid)
                {
                    // An older event of the same name: the watch has not shown its end yet.
                    self.forget(&pass.uid);
                    return;
                }
                pass.sight = sight;
                self.go_on(pass, now);
            }
            Done::Written(Ok(seen)) => {
                self.tell(&pass, &seen.event.claim);
                self.rests.remove(&pass.uid);
                self.events.insert(pass.uid.clone(), seen.event.clone());
                self.note_finished(now);
                pass.sight.event = Some(seen);
                self.go_on(pass, now);
            }
            Done::Set(Ok(())) => {
                if let Action::SetCondition(condition) = &pass.action {
                    pass.sight.condition = condition.clone();
                }
                self.condition_of = Some(pass.uid.clone());
                self.rests.remove(&pass.uid);
                self.go_on(pass, now);
            }
            Done::Removed(Ok(())) => self.forget(&pass.uid),
            Done::Answered(reply) => self.answered(pass, reply, now),
            Done::Set(Err(ClaimError::Forbidden(why))) => self.forbidden(pass, why, now),
            Done::Set(Err(ClaimError::Refused(why))) => self.fail(pass, why, now),
            Done::Looked(Err(error))
            | Done::Written(Err(error))
            | Done::Removed(Err(error))
            | Done::Set(Err(error)) => self.retry(pass, error.to_string(), now),
        }
    }

    /// Decides anew after every step, on what is known by then.
    fn go_on(&mut self, pass: Pass, now: Time) {
        let strange = self.condition_of.as_ref().is_some_and(|uid| *uid != pass.uid);
        match self.own.next(&pass.sight, strange, now) {
            Move::Do(Action::Remove(seen)) if self.is_kept(&seen, now) => {
                self.rest(&pass, LOOK_AGAIN, String::new(), now);
            }
            Move::Do(action) => self.proceed(pass, action),
            Move::Gone => self.forget(&pass.uid),
            Move::NotOurs => self.rest(&pass, LOOK_AT_OTHERS, String::new(), now),
            Move::Leave(why) => self.rest(&pass, LOOK_AGAIN, why, now),
        }
    }

    fn is_kept(&self, seen: &Claimable, now: Time) -> bool {
        self.kept_until(&seen.event).is_some_and(|until| now < until)
    }

    fn answered(&mut self, pass: Pass, reply: Option<Reply>, now: Time) {
        let (Some(reply), Some(seen)) = (reply, &pass.sight.event) else {
            return self.rest(&pass, LOOK_AGAIN, "the door has closed".to_owned(), now);
        };
        if let Reply::Error(why) = &reply {
            return self.fail(pass, why.clone(), now);
        }
        match self.own.answered(seen, &reply) {
            Some(Move::Do(action)) => self.proceed(pass, action),
            Some(Move::Leave(_) | Move::NotOurs | Move::Gone) | None => {
                self.rest(&pass, LOOK_AGAIN, String::new(), now);
            }
        }
    }

    /// The API server refuses what may be granted in a moment: the event fails only when it has been refused for long.
    fn forbidden(&mut self, pass: Pass, why: String, now: Time) {
        let since = self.rests.get(&pass.uid).and_then(|rest| rest.forbidden_since);
        let since = since.unwrap_or(now);
        let last = since + self.forbidden_timeout;
        if now >= last {
            return self.fail(pass, why, now);
        }
        let uid = pass.uid.clone();
        self.retry(pass, why, now);
        if let Some(rest) = self.rests.get_mut(&uid) {
            rest.forbidden_since = Some(since);
            rest.until = rest.until.min(last);
        }
    }

    /// The event has failed for good.
    fn fail(&mut self, pass: Pass, why: String, now: Time) {
        let seen = pass.sight.event.as_ref();
        let Some(seen) = seen.filter(|seen| seen.event.claim == ClaimStatus::Claimed) else {
            // Not even claimed yet: nobody has been promised anything.
            return self.retry(pass, why, now);
        };
        let event = seen.event.name.clone();
        if let Move::Do(action) = self.own.finish(seen, ClaimStatus::Failed) {
            self.notes.push_back(Note::Failed { event, why });
            self.proceed(pass, action);
        }
    }

    /// This is to be done next.
    fn proceed(&mut self, pass: Pass, action: Action) {
        self.pass = Some(Pass {
            action,
            under_way: false,
            ..pass
        });
    }

    /// The event is left alone, each time for longer.
    fn retry(&mut self, pass: Pass, why: String, now: Time) {
        let pause = self
            .rests
            .get(&pass.uid)
            .filter(|rest| !rest.light)
            .map_or(FIRST_PAUSE, |rest| rest.pause);
        self.leave(&pass, why, |why| Rest {
            until: now + pause,
            pause: pause.doubled().min(LONGEST_PAUSE),
            light: false,
            forbidden_since: None,
            why,
        });
    }

    /// The event is left alone until something changes.
    fn rest(&mut self, pass: &Pass, span: Duration, why: String, now: Time) {
        let until = if pass.stirred { now } else { now + span };
        self.leave(pass, why, |why| Rest {
            until,
            pause: FIRST_PAUSE,
            light: true,
            forbidden_since: None,
            why,
        });
    }

    fn leave(&mut self, pass: &Pass, why: String, rest: impl FnOnce(String) -> Rest) {
        let Some(event) = self.events.get(&pass.uid).map(|event| event.name.clone()) else {
            return;
        };
        let known = self.rests.get(&pass.uid).is_some_and(|rest| rest.why == why);
        if !why.is_empty() && !known {
            let why = why.clone();
            self.notes.push_back(Note::Left { event, why });
        }
        self.rests.insert(pass.uid.clone(), rest(why));
    }

    fn tell(&mut self, pass: &Pass, claim: &ClaimStatus) {
        let Action::Write(seen, Change::Claim { .. } | Change::Finish { .. }) = &pass.action else {
            return;
        };
        self.notes.push_back(Note::Became {
            event: seen.event.name.clone(),
            claim: claim.clone(),
        });
    }
}
