//! Translates deadlines of LifecycleEvents from the API server's wall-clock times to moments of the driver's clock.
//! Each is translated once, when it is first seen, so a later change of the wall clock does not move it. It must not
//! know what a deadline means.

use std::collections::BTreeMap;

use scupper_engine::Time;

use super::lifecycle::VersionedEvent;
use super::self_claim::{ActionResult, ClaimAction, EventUpdate};
use super::{LifecycleChange, LifecycleEvent};
use scupper_common::clock::Clock;

/// See the module.
#[derive(Debug)]
pub(super) struct MonotonicDeadlines {
    clock: Clock,
    /// The wall-clock deadline and its moment, by the event's UID.
    known: BTreeMap<String, (Time, Time)>,
}

impl MonotonicDeadlines {
    pub(super) const fn new(clock: Clock) -> Self {
        Self {
            clock,
            known: BTreeMap::new(),
        }
    }

    /// Translates a change from the watch of events: moments instead of wall-clock times.
    pub(super) fn change(&mut self, change: LifecycleChange) -> LifecycleChange {
        match change {
            LifecycleChange::Applied(event) => LifecycleChange::Applied(self.event(event)),
            LifecycleChange::Deleted(uid) => {
                self.known.remove(&uid);
                LifecycleChange::Deleted(uid)
            }
            LifecycleChange::Listed(events) => {
                self.known
                    .retain(|uid, _| events.iter().any(|event| event.uid == *uid));
                LifecycleChange::Listed(events.into_iter().map(|event| self.event(event)).collect())
            }
        }
    }

    /// Translates the result of an action likewise.
    pub(super) fn done(&mut self, done: ActionResult) -> ActionResult {
        match done {
            ActionResult::Read(Ok(mut snapshot)) => {
                snapshot.event = snapshot.event.map(|seen| self.versioned(seen));
                ActionResult::Read(Ok(snapshot))
            }
            ActionResult::Written(Ok(seen)) => ActionResult::Written(Ok(self.versioned(seen))),
            other => other,
        }
    }

    /// Translates an action back to wall-clock times, rounded up to the whole second that the API server keeps.
    pub(super) fn action(&self, action: ClaimAction) -> ClaimAction {
        match action {
            ClaimAction::Write(seen, EventUpdate::Claim { driver, sla }) => {
                let up = |wall: Time| Time::from_millis(wall.as_millis().div_ceil(1000).saturating_mul(1000));
                let sla = sla.map(|sla| up(self.clock.wall_at(sla)));
                ClaimAction::Write(seen, EventUpdate::Claim { driver, sla })
            }
            other => other,
        }
    }

    fn versioned(&mut self, seen: VersionedEvent) -> VersionedEvent {
        VersionedEvent {
            event: self.event(seen.event),
            ..seen
        }
    }

    fn event(&mut self, mut event: LifecycleEvent) -> LifecycleEvent {
        let Some(wall) = event.sla else {
            return event;
        };
        let known = self.known.get(&event.uid).filter(|(said, _)| *said == wall);
        let moment = match known {
            Some((_, moment)) => *moment,
            None => self.clock.moment_of_wall(wall),
        };
        self.known.insert(event.uid.clone(), (wall, moment));
        event.sla = Some(moment);
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scupper_api::ClaimStatus;

    fn event(sla_secs: u64) -> LifecycleEvent {
        LifecycleEvent {
            uid: "u-1".to_owned(),
            name: "drain-a".to_owned(),
            created: None,
            deleting: false,
            transition: "drain.test".to_owned(),
            node: "worker-1".to_owned(),
            claim: ClaimStatus::Claimed,
            driver: None,
            sla: Some(Time::from_millis(sla_secs * 1000)),
            flags: None,
        }
    }

    fn translated(monotonic_deadlines: &mut MonotonicDeadlines, sla_secs: u64) -> u64 {
        match monotonic_deadlines.change(LifecycleChange::Applied(event(sla_secs))) {
            LifecycleChange::Applied(event) => event.sla.unwrap().as_millis() / 1000,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_translated_once() {
        let clock = Clock::starting_at(Time::from_millis(100_000_000));
        let mut monotonic_deadlines = MonotonicDeadlines::new(clock);
        assert_eq!(translated(&mut monotonic_deadlines, 100_060), 100_060);
        clock.step_wall(3_600_000);
        assert_eq!(
            translated(&mut monotonic_deadlines, 100_060),
            100_060,
            "seen before the clock was set"
        );
        assert_eq!(
            translated(&mut monotonic_deadlines, 103_660),
            100_060,
            "another deadline, by the clock as it is"
        );
        monotonic_deadlines.change(LifecycleChange::Deleted("u-1".to_owned()));
        assert_eq!(translated(&mut monotonic_deadlines, 103_661), 100_061);
    }

    #[tokio::test(start_paused = true)]
    async fn written_deadlines_are_wall_clock_times_in_whole_seconds() {
        let clock = Clock::starting_at(Time::from_millis(100_000_000));
        clock.step_wall(-3_599_700);
        let seen = VersionedEvent {
            event: event(0),
            version: "1".to_owned(),
            finalizers: Vec::new(),
        };
        let change = EventUpdate::Claim {
            driver: "drain.test".to_owned(),
            sla: Some(Time::from_millis(100_060_000)),
        };
        let written = MonotonicDeadlines::new(clock).action(ClaimAction::Write(seen, change));
        let ClaimAction::Write(_, EventUpdate::Claim { sla, .. }) = written else {
            panic!("{written:?}");
        };
        assert_eq!(sla, Some(Time::from_millis(96_461_000)));
    }
}
