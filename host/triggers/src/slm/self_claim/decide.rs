//! What is to be done with an event that was just looked at: a table, by the kubelet's rules. It must not know streams
//! or clocks, nor what was done before.

use std::time::Duration;

use scupper_engine::Time;

use super::api::{Change, Claimable, Condition, Sight};
use crate::slm::claim::{Call, Method, Reply};
use crate::slm::deadline::with_margin;
use crate::slm::{ClaimStatus, LifecycleEvent, Transition};

/// What is lost where a moment is cut to whole seconds.
const ROUNDING: Duration = Duration::from_millis(999);

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::slm) enum Action {
    /// Look at the event of this name.
    Look(String),
    /// Change the event as it was seen.
    Write(Claimable, Change),
    /// Delete the event.
    Remove(Claimable),
    /// Write the node's condition.
    SetCondition(Condition),
    /// Call the door.
    Call(Call),
}

/// What follows from what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart at once, never stored"
)]
pub(super) enum Move {
    /// Do this, then decide again.
    Do(Action),
    /// Nothing until something changes; why, for people.
    Leave(String),
    /// It is none of our business.
    NotOurs,
    /// It is gone.
    Gone,
}

/// Who decides.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) driver: String,
    pub(super) node: String,
}

impl Own {
    /// What is to be done. `strange`: the condition may still be that of another event, which has ended meanwhile.
    pub(super) fn next(&self, sight: &Sight, strange: bool, now: Time) -> Move {
        let Some(seen) = &sight.event else {
            return Move::Gone;
        };
        match &seen.event.claim {
            ClaimStatus::Pending => self.claim(seen, sight, now),
            ClaimStatus::Claimed => self.drive(seen, sight, strange, now),
            ClaimStatus::Other(word) => Move::Leave(format!("its claim status `{word}` is not known")),
            ClaimStatus::Failed | ClaimStatus::SlaExpired => self.clean_up_failed(seen, sight, strange),
            ClaimStatus::Succeeded => self.clean_up(seen),
        }
    }

    fn claim(&self, seen: &Claimable, sight: &Sight, now: Time) -> Move {
        let event = &seen.event;
        if event.deleting && !seen.is_held() {
            return Move::Leave("it is being deleted".to_owned());
        }
        let Some(transition) = &sight.transition else {
            return missing(event);
        };
        if transition.driver != self.driver || event.node != self.node {
            return Move::NotOurs;
        }
        if !seen.is_held() {
            return write(seen, seen.hold());
        }
        if is_of(transition, &sight.condition.reason) {
            // What an earlier event left there must not end this one before it began.
            return reset(transition);
        }
        let driver = self.driver.clone();
        // The terminal may say how long the drain may take; where it does not, the transition limits it.
        let sla = match event.flags().and_then(|flags| flags.timeout) {
            Some(wanted) => Some(now + (with_margin(wanted) + ROUNDING).into()),
            None => transition.sla.map(|sla| now + sla.into()),
        };
        let sla = sla.map(whole_seconds);
        write(seen, Change::Claim { driver, sla })
    }

    fn drive(&self, seen: &Claimable, sight: &Sight, strange: bool, now: Time) -> Move {
        let event = &seen.event;
        if event.driver.as_ref() != Some(&self.driver) {
            return Move::NotOurs;
        }
        // A finalizer cannot be added to what is being deleted; it is driven to its end without.
        if !seen.is_held() && !event.deleting {
            return write(seen, seen.hold());
        }
        if event.sla.is_some_and(|sla| now >= sla) {
            return self.finish(seen, ClaimStatus::SlaExpired);
        }
        let Some(transition) = &sight.transition else {
            return missing(event);
        };
        let reason = reason_for(&transition.name, &sight.condition);
        if strange && is_of(transition, reason) {
            return reset(transition);
        }
        if reason == transition.end {
            return self.finish(seen, ClaimStatus::Succeeded);
        }
        let method = if reason == transition.start {
            Method::End { expired: false }
        } else {
            Method::Start
        };
        Move::Do(Action::Call(Call {
            method,
            transition: transition.name.clone(),
            event: event.name.clone(),
            node: self.node.clone(),
            start: transition.start.clone(),
            end: transition.end.clone(),
        }))
    }

    /// A failed event must not leave a condition that says that it has begun: the next reader would take the node for one
    /// that is under way. This comes after the event's end is written, so that a restart does not begin it again.
    fn clean_up_failed(&self, seen: &Claimable, sight: &Sight, strange: bool) -> Move {
        let is_ours = seen.event.driver.as_ref() == Some(&self.driver) && seen.is_held() && !strange;
        let transition = sight.transition.as_ref().filter(|_| is_ours);
        let stale = transition.filter(|it| reason_for(&it.name, &sight.condition) == it.start);
        match stale.filter(|it| !it.start.is_empty()) {
            Some(transition) => reset(transition),
            None => self.clean_up(seen),
        }
    }

    /// What is over is let go and deleted, if it was ours.
    fn clean_up(&self, seen: &Claimable) -> Move {
        if seen.event.driver.as_ref() != Some(&self.driver) {
            Move::NotOurs
        } else if seen.is_held() {
            write(seen, seen.release())
        } else if seen.event.deleting && seen.finalizers.is_empty() {
            Move::Gone
        } else if seen.event.deleting {
            Move::Leave("it has ended, and a finalizer that is not ours keeps it".to_owned())
        } else {
            Move::Do(Action::Remove(seen.clone()))
        }
    }

    pub(super) fn finish(&self, seen: &Claimable, status: ClaimStatus) -> Move {
        let driver = (status == ClaimStatus::Failed).then(|| self.driver.clone());
        write(seen, Change::Finish { status, driver })
    }

    /// What the door's answer to a call means. `None`: nothing is to be done until something changes.
    pub(super) fn answered(&self, seen: &Claimable, reply: &Reply) -> Option<Move> {
        match reply {
            Reply::Error(_) => Some(self.finish(seen, ClaimStatus::Failed)),
            Reply::Condition(reason) => Some(Move::Do(Action::SetCondition(condition(
                reason,
                &seen.event.transition,
            )))),
            Reply::Empty => None,
        }
    }
}

fn write(seen: &Claimable, change: Change) -> Move {
    Move::Do(Action::Write(seen.clone(), change))
}

fn missing(event: &LifecycleEvent) -> Move {
    Move::Leave(format!("there is no LifecycleTransition {}", event.transition))
}

/// The reason, unless the message says that it is another transition's. Two drivers of one node may use the same words.
fn reason_for<'a>(transition: &str, condition: &'a Condition) -> &'a str {
    let own = condition.message == message(transition);
    let others = condition
        .message
        .strip_prefix(MESSAGE)
        .is_some_and(|rest| rest.starts_with('\''));
    if others && !own { "" } else { &condition.reason }
}

const MESSAGE: &str = "Lifecycle Transition ";

fn message(transition: &str) -> String {
    format!("{MESSAGE}'{transition}'")
}

fn condition(reason: &str, transition: &str) -> Condition {
    Condition {
        reason: reason.to_owned(),
        message: message(transition),
    }
}

fn is_of(transition: &Transition, reason: &str) -> bool {
    !reason.is_empty() && (reason == transition.start || reason == transition.end)
}

/// Neither begun nor ended.
fn reset(transition: &Transition) -> Move {
    Move::Do(Action::SetCondition(condition("", &transition.name)))
}

/// As it is read back: the API server keeps whole seconds.
const fn whole_seconds(time: Time) -> Time {
    Time::from_millis(time.as_millis() / 1000 * 1000)
}

#[cfg(test)]
mod tests;
