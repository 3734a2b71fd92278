//! The cluster's time. It follows tokio's clock, so a test that pauses tokio's clock also stops this one.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::time::Instant;

/// A wall clock that runs with tokio's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: SystemTime,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            origin: SystemTime::now(),
            started: Instant::now(),
        }
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::try_from(self.origin + self.started.elapsed()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The current time as in objects: whole seconds.
    pub(crate) fn stamp(&self) -> String {
        stamp(self.now())
    }

    /// How long ago a timestamp was; zero for an unreadable or future one.
    pub(crate) fn since(&self, stamp: &str) -> Duration {
        let then: Timestamp = stamp.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        Duration::try_from(self.now().duration_since(then)).unwrap_or_default()
    }
}

/// Whole seconds, RFC 3339.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A timestamp moved by some seconds.
pub(crate) fn shifted(stamp_text: &str, seconds: i64) -> String {
    let at: Timestamp = stamp_text.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    stamp(
        at.checked_add(jiff::SignedDuration::from_secs(seconds))
            .unwrap_or(at),
    )
}
