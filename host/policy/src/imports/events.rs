//! The import `events`: Kubernetes Events emitted by policies. They are limited in number, and repetitions are dropped:
//! Events occupy the API server's own store.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::PoisonError;
use std::time::Duration;

use scupper_common::text::one_line;
use scupper_engine::{PodRef, Time};
use scupper_policy_spec::Capability;

use super::bucket::Bucket;
use super::store_data::{StepScope, StoreData};
use crate::runtime::observer::{EmitResult, Observation};
use crate::wit::bindings::scupper::drain::events::{Error, Host, Kind, Regarding};
use crate::{AccessError, PolicyEvent};

/// The API server's limit.
const REASON_BYTES: usize = 128;
const NOTE_BYTES: usize = 1024;

/// The burst, and the number per minute after that: hooks step every few seconds for days.
const BURST: u64 = 10;
const PER_MINUTE: u64 = 6;

/// Within this time the same Event counts as a repetition.
const REPEATED: Duration = Duration::from_secs(600);

/// How many Events are remembered: with six a minute, those of the last ten minutes and the burst.
const REMEMBERED: usize = 70;

/// Bytes of a policy's text that an error quotes.
const SHOWN_BYTES: usize = 100;

/// A policy's recent Events.
pub(crate) struct EventLimiter {
    bucket: Bucket,
    recent: Vec<(u64, Time)>,
}

impl EventLimiter {
    pub(crate) const fn new(now: Time) -> Self {
        Self {
            bucket: Bucket::new(BURST, PER_MINUTE, now),
            recent: Vec::new(),
        }
    }

    /// Whether this Event may be emitted now; if so, records it.
    fn take(&mut self, event: u64, now: Time) -> Result<(), EmitResult> {
        self.recent.retain(|(_, at)| now.since(*at) < REPEATED);
        if self.recent.iter().any(|(other, _)| *other == event) {
            return Err(EmitResult::Repeated);
        }
        if !self.bucket.take(1, now) {
            return Err(EmitResult::TooMany);
        }
        if self.recent.len() >= REMEMBERED {
            self.recent.remove(0);
        }
        self.recent.push((event, now));
        Ok(())
    }

    /// Removes an Event that was not emitted after all.
    fn forget(&mut self, event: u64) {
        self.recent.retain(|(other, _)| *other != event);
    }
}

impl Host for StoreData {
    async fn emit(
        &mut self,
        regarding: Regarding,
        kind: Kind,
        reason: String,
        note: String,
    ) -> Result<(), Error> {
        let result = self.try_emit(&regarding, kind, &reason, &note).await;
        let reported = match &result {
            Ok(reported) => *reported,
            Err(Error::TooMany(_)) => EmitResult::TooMany,
            Err(Error::Unavailable(_)) => EmitResult::Unavailable,
            Err(_) => EmitResult::Refused,
        };
        self.context.observer.observe(Observation::Emitted {
            policy: &self.context.policy,
            result: reported,
        });
        result.map(|_| ())
    }
}

impl StoreData {
    async fn try_emit(
        &self,
        regarding: &Regarding,
        kind: Kind,
        reason: &str,
        note: &str,
    ) -> Result<EmitResult, Error> {
        let scope = self.may_emit(regarding)?;
        check(reason, note).map_err(Error::Invalid)?;
        let pod = pod(scope, regarding)?;
        let key = key(regarding, reason, note);
        let context = &self.context;
        let taken = self.emitted(|emitted| emitted.take(key, context.clock.now()));
        match taken {
            Ok(()) => {}
            Err(EmitResult::Repeated) => return Ok(EmitResult::Repeated),
            Err(_) => {
                let text = format!("a policy may emit {BURST} Events at once and {PER_MINUTE} a minute");
                return Err(Error::TooMany(text));
            }
        }
        let event = PolicyEvent {
            policy: &context.policy,
            node: &scope.node,
            pod,
            warning: kind == Kind::Warning,
            reason,
            note,
        };
        let asked = context.cluster.emit(&event);
        match self.meter.counters.waiting(asked).await {
            Ok(()) => {
                self.meter.counters.event();
                Ok(EmitResult::Emitted)
            }
            Err(error) => {
                self.emitted(|emitted| emitted.forget(key));
                Err(match error {
                    AccessError::NotFound(what) => Error::NotFound(what),
                    AccessError::Unavailable(why) => Error::Unavailable(why),
                })
            }
        }
    }

    fn may_emit(&self, regarding: &Regarding) -> Result<&StepScope, Error> {
        let Some(scope) = self.scope.of_step() else {
            let closed = "only `step` may emit; the other functions are called for their answer alone";
            return Err(Error::NotGranted(closed.to_owned()));
        };
        let target = match regarding {
            Regarding::Node => "node",
            Regarding::Pod(_) => "pods",
        };
        let granted = self
            .context
            .grants
            .iter()
            .any(|grant| grant.capability == Capability::Events && grant.target == target);
        granted
            .then_some(scope)
            .ok_or_else(|| Error::NotGranted(format!("events:{target} was not wanted and granted")))
    }

    fn emitted<R>(&self, look: impl FnOnce(&mut EventLimiter) -> R) -> R {
        // Plain values: a panic cannot leave them half written.
        look(&mut self.context.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The pod in question, which must be one that the host has shown to the policy.
fn pod<'a>(scope: &'a StepScope, regarding: &Regarding) -> Result<Option<&'a PodRef>, Error> {
    let Regarding::Pod(uid) = regarding else {
        return Ok(None);
    };
    let found = scope.pods.iter().find(|pod| pod.uid.as_str() == *uid);
    let unknown = || format!("no pod on the node has the UID {}", one_line(uid, SHOWN_BYTES));
    found.map(Some).ok_or_else(|| Error::NotFound(unknown()))
}

/// Identifies an Event. A policy that finds two Events with one key harms only itself.
fn key(regarding: &Regarding, reason: &str, note: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    match regarding {
        Regarding::Node => None,
        Regarding::Pod(uid) => Some(uid),
    }
    .hash(&mut hasher);
    (reason, note).hash(&mut hasher);
    hasher.finish()
}

fn check(reason: &str, note: &str) -> Result<(), String> {
    let camel = reason.starts_with(|first: char| first.is_ascii_uppercase())
        && reason.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !camel || reason.len() > REASON_BYTES {
        return Err(format!(
            "`{}` is not a valid reason: one word in CamelCase of at most {REASON_BYTES} bytes, such as JobsRunning",
            one_line(reason, SHOWN_BYTES)
        ));
    }
    if note.is_empty() || note.len() > NOTE_BYTES {
        return Err(format!(
            "the note has {} bytes; 1 to {NOTE_BYTES} are right",
            note.len()
        ));
    }
    // If escaping changes nothing, there was nothing to escape.
    if one_line(note, NOTE_BYTES) != note {
        return Err(format!(
            "the note must be a single line: {}",
            one_line(note, SHOWN_BYTES)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    #[test]
    fn reasons_are_single_words_and_notes_are_single_lines() {
        assert_eq!(check("JobsRunning", "3 jobs run"), Ok(()));
        assert_eq!(check("A1", &"x".repeat(1024)), Ok(()));
        for reason in ["", "jobs", "Jobs running", "Jobs\n", "Jöbs", &"J".repeat(129)] {
            assert!(
                check(reason, "note")
                    .unwrap_err()
                    .contains("is not a valid reason"),
                "{reason}"
            );
        }
        for note in ["", "a\nb", "\u{1b}[2J", "a\u{202e}b", &"x".repeat(1025)] {
            assert!(check("Jobs", note).is_err(), "{note:?}");
        }
    }

    #[test]
    fn a_repeated_event_is_dropped_and_costs_nothing() {
        let mut emitted = EventLimiter::new(at(0));
        assert_eq!(emitted.take(1, at(0)), Ok(()));
        for second in 0..599 {
            assert_eq!(emitted.take(1, at(second)), Err(EmitResult::Repeated));
        }
        assert_eq!(emitted.take(1, at(600)), Ok(()));
        emitted.forget(1);
        assert_eq!(emitted.take(1, at(601)), Ok(()));
    }

    #[test]
    fn ten_at_once_and_one_in_ten_seconds() {
        let mut emitted = EventLimiter::new(at(0));
        let taken = |emitted: &mut EventLimiter, from: u64, at: Time| {
            (from..from + 100)
                .filter(|key| emitted.take(*key, at).is_ok())
                .count()
        };
        assert_eq!(taken(&mut emitted, 0, at(0)), 10);
        assert_eq!(taken(&mut emitted, 1000, at(9)), 0);
        assert_eq!(taken(&mut emitted, 2000, at(10)), 1);
        assert_eq!(taken(&mut emitted, 3000, at(3600)), 10);
        assert!(emitted.recent.len() <= REMEMBERED);
    }
}
