//! Moments and spans, in milliseconds. The engine never reads a clock: every moment comes from its driver.

use core::fmt;
use core::ops::Add;

/// A moment: milliseconds since 1970-01-01T00:00:00Z, so that deadlines and checkpoints outlive a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

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
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// A span of seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// The span in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The span in whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// What is left of the span after `other`; zero when that is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Twice the span, for back-off.
    pub const fn doubled(self) -> Self {
        Self(self.0.saturating_mul(2))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Duration {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }
}

impl From<core::time::Duration> for Duration {
    /// What is less than a millisecond is left out.
    fn from(span: core::time::Duration) -> Self {
        Self(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_millis(span.0)
    }
}

impl fmt::Display for Duration {
    /// `0.4s`, `12s`, `3m05s`, `2h01m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.as_secs();
        match secs {
            0 if self.0 >= 100 => write!(f, "0.{}s", self.0 / 100),
            0..60 => write!(f, "{secs}s"),
            60..3600 => write!(f, "{}m{:02}s", secs / 60, secs % 60),
            _ => write!(f, "{}h{:02}m", secs / 3600, secs / 60 % 60),
        }
    }
}
