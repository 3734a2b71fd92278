//! Decides the next action on an event that was just read: a table, by the kubelet's rules. It must not know streams,
//! clocks or earlier actions.

use std::time::Duration;

use scupper_api::{ClaimStatus, LifecycleTransition};
use scupper_engine::Time;

use super::api::{
    EventSnapshot, EventUpdate, TransitionCondition, add_finalizer, has_finalizer, remove_finalizer,
};
use crate::slm::call::{Call, Method, Reply};
use crate::slm::deadline::with_margin;
use crate::slm::lifecycle::valid_flags;
use crate::slm::{LifecycleEvent, VersionedEvent};

/// The loss from cutting a moment to whole seconds.
const ROUNDING: Duration = Duration::from_millis(999);

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::slm) enum ClaimAction {
    /// Read the event of this name.
    Read(String),
    /// Update the event in the version that was read.
    Write(VersionedEvent, EventUpdate),
    /// Delete the event.
    Delete(VersionedEvent),
    /// Write the node's condition.
    SetCondition(TransitionCondition),
    /// Call the trigger.
    Call(Call),
}

/// The decision on what was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart at once, never stored"
)]
pub(super) enum NextStep {
    /// Carry out this action, then decide again.
    Do(ClaimAction),
    /// Wait until something changes, for this reason.
    Wait(String),
    /// The event is for another driver.
    NotOurs,
    /// The event is gone.
    Gone,
}

/// The inputs of the decisions.
#[derive(Clone, Debug)]
pub(super) struct ClaimRules {
    pub(super) driver: String,
    pub(super) node: String,
}

impl ClaimRules {
    /// Decides the next action. `foreign_condition`: the condition may still be that of another event, which has ended
    /// meanwhile.
    pub(super) fn next(&self, snapshot: &EventSnapshot, foreign_condition: bool, now: Time) -> NextStep {
        let Some(seen) = &snapshot.event else {
            return NextStep::Gone;
        };
        match &seen.event.claim {
            ClaimStatus::Pending => self.claim(seen, snapshot, now),
            ClaimStatus::Claimed => self.handle_claimed(seen, snapshot, foreign_condition, now),
            ClaimStatus::Other(report) => NextStep::Wait(format!("its claim status `{report}` is not known")),
            ClaimStatus::Failed | ClaimStatus::SlaExpired => {
                self.clean_up_failed(seen, snapshot, foreign_condition)
            }
            ClaimStatus::Succeeded => self.clean_up(seen),
        }
    }

    fn claim(&self, seen: &VersionedEvent, snapshot: &EventSnapshot, now: Time) -> NextStep {
        let event = &seen.event;
        if event.deleting && !has_finalizer(seen) {
            return NextStep::Wait("it is being deleted".to_owned());
        }
        let Some(transition) = &snapshot.transition else {
            return missing(event);
        };
        if transition.driver != self.driver || event.node != self.node {
            return NextStep::NotOurs;
        }
        if !has_finalizer(seen) {
            return write(seen, add_finalizer(seen));
        }
        if is_of(transition, &snapshot.condition.reason) {
            // The condition of an earlier event must not end this one before it began.
            return reset(transition);
        }
        let driver = self.driver.clone();
        // The drain settings on the event may limit the drain's time; otherwise the transition limits it.
        let sla = match valid_flags(event).and_then(|flags| flags.timeout) {
            Some(wanted) => Some(now + with_margin(wanted).saturating_add(ROUNDING)),
            None => transition.sla.map(|sla| now + sla),
        };
        let sla = sla.map(whole_seconds);
        write(seen, EventUpdate::Claim { driver, sla })
    }

    fn handle_claimed(
        &self,
        seen: &VersionedEvent,
        snapshot: &EventSnapshot,
        foreign_condition: bool,
        now: Time,
    ) -> NextStep {
        let event = &seen.event;
        if event.driver.as_ref() != Some(&self.driver) {
            return NextStep::NotOurs;
        }
        // An object being deleted cannot receive a finalizer; the event is driven to its end without it.
        if !has_finalizer(seen) && !event.deleting {
            return write(seen, add_finalizer(seen));
        }
        if event.sla.is_some_and(|sla| now >= sla) {
            return self.finish(seen, ClaimStatus::SlaExpired);
        }
        let Some(transition) = &snapshot.transition else {
            return missing(event);
        };
        let reason = reason_for(&transition.name, &snapshot.condition);
        if foreign_condition && is_of(transition, reason) {
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
        NextStep::Do(ClaimAction::Call(Call {
            method,
            transition: transition.name.clone(),
            event: event.name.clone(),
            node: self.node.clone(),
            start: transition.start.clone(),
            end: transition.end.clone(),
        }))
    }

    /// Resets the condition of a failed event: it must not still report the transition as begun, or the node would
    /// appear busy. This follows the write of the event's end, so that a restart does not begin it again.
    fn clean_up_failed(
        &self,
        seen: &VersionedEvent,
        snapshot: &EventSnapshot,
        foreign_condition: bool,
    ) -> NextStep {
        let is_ours =
            seen.event.driver.as_ref() == Some(&self.driver) && has_finalizer(seen) && !foreign_condition;
        let transition = snapshot.transition.as_ref().filter(|_| is_ours);
        let stale = transition.filter(|it| reason_for(&it.name, &snapshot.condition) == it.start);
        match stale.filter(|it| !it.start.is_empty()) {
            Some(transition) => reset(transition),
            None => self.clean_up(seen),
        }
    }

    /// Releases an ended event, and deletes it if it was ours.
    fn clean_up(&self, seen: &VersionedEvent) -> NextStep {
        if seen.event.driver.as_ref() != Some(&self.driver) {
            NextStep::NotOurs
        } else if has_finalizer(seen) {
            write(seen, remove_finalizer(seen))
        } else if seen.event.deleting && seen.finalizers.is_empty() {
            NextStep::Gone
        } else if seen.event.deleting {
            NextStep::Wait("it has ended, and a finalizer that is not ours keeps it".to_owned())
        } else {
            NextStep::Do(ClaimAction::Delete(seen.clone()))
        }
    }

    pub(super) fn finish(&self, seen: &VersionedEvent, status: ClaimStatus) -> NextStep {
        let driver = (status == ClaimStatus::Failed).then(|| self.driver.clone());
        write(seen, EventUpdate::Finish { status, driver })
    }

    /// Interprets the trigger's answer to a call. `None`: wait until something changes.
    pub(super) fn answered(&self, seen: &VersionedEvent, reply: &Reply) -> Option<NextStep> {
        match reply {
            Reply::Error(_) => Some(self.finish(seen, ClaimStatus::Failed)),
            Reply::ConditionReason(reason) => Some(NextStep::Do(ClaimAction::SetCondition(condition(
                reason,
                &seen.event.transition,
            )))),
            Reply::Empty => None,
        }
    }
}

fn write(seen: &VersionedEvent, change: EventUpdate) -> NextStep {
    NextStep::Do(ClaimAction::Write(seen.clone(), change))
}

fn missing(event: &LifecycleEvent) -> NextStep {
    NextStep::Wait(format!("there is no LifecycleTransition {}", event.transition))
}

/// Returns the reason, unless the message names another transition. Two drivers of one node may use the same reasons.
fn reason_for<'a>(transition: &str, condition: &'a TransitionCondition) -> &'a str {
    let rules = condition.message == message(transition);
    let others = condition
        .message
        .strip_prefix(MESSAGE)
        .is_some_and(|back_off| back_off.starts_with('\''));
    if others && !rules { "" } else { &condition.reason }
}

const MESSAGE: &str = "Lifecycle Transition ";

fn message(transition: &str) -> String {
    format!("{MESSAGE}'{transition}'")
}

fn condition(reason: &str, transition: &str) -> TransitionCondition {
    TransitionCondition {
        reason: reason.to_owned(),
        message: message(transition),
    }
}

fn is_of(transition: &LifecycleTransition, reason: &str) -> bool {
    !reason.is_empty() && (reason == transition.start || reason == transition.end)
}

/// Resets the condition to neither begun nor ended.
fn reset(transition: &LifecycleTransition) -> NextStep {
    NextStep::Do(ClaimAction::SetCondition(condition("", &transition.name)))
}

/// The time as it is read back: the API server keeps whole seconds.
const fn whole_seconds(time: Time) -> Time {
    Time::from_millis(time.as_millis() / 1000 * 1000)
}

#[cfg(test)]
mod tests;
