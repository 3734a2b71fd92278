//! Moments in milliseconds, and what the engine and its edges need of spans beyond [`Duration`]. The engine never reads
//! a clock: every moment comes from its driver.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// A moment: milliseconds since 1970-01-01T00:00:00Z, so that deadlines and checkpoints outlive a process.
///
/// Its arithmetic saturates and ignores what is less than a millisecond. `Duration`'s `+` and `*` panic on overflow: use
/// its `saturating_` methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(u64);

impl Time {
    /// The moment `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(whole_millis(span)))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    /// The epoch when the span is longer than the time since then.
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(whole_millis(span)))
    }
}

/// The span in whole milliseconds, rounded down; `u64::MAX` when it is longer.
pub fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A span as people read it: `0.4s`, `12s`, `3m05s`, `2h01m`.
#[derive(Clone, Copy, Debug)]
pub struct HumanDuration(pub Duration);

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, tenths) = (self.0.as_secs(), self.0.subsec_millis() / 100);
        match secs {
            0 if tenths > 0 => write!(f, "0.{tenths}s"),
            0..60 => write!(f, "{secs}s"),
            60..3600 => write!(f, "{}m{:02}s", secs / 60, secs % 60),
            _ => write!(f, "{}h{:02}m", secs / 3600, secs / 60 % 60),
        }
    }
}
