//! What time it is in the cluster: it follows tokio's clock, so that a test that pauses that one stops this one too.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::time::Instant;

/// A wall clock that goes as tokio's.
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

    /// The moment it is.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::try_from(self.origin + self.started.elapsed()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The moment it is, as objects carry it: whole seconds.
    pub(crate) fn stamp(&self) -> String {
        stamp(self.now())
    }

    /// How long ago a stamp was; zero for one that cannot be read or lies ahead.
    pub(crate) fn since(&self, stamp: &str) -> Duration {
        let then: Timestamp = stamp.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        Duration::try_from(self.now().duration_since(then)).unwrap_or_default()
    }
}

/// Whole seconds, RFC 3339.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A stamp moved by some seconds.
pub(crate) fn shifted(stamp_text: &str, seconds: i64) -> String {
    let at: Timestamp = stamp_text.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    stamp(
        at.checked_add(jiff::SignedDuration::from_secs(seconds))
            .unwrap_or(at),
    )
}
