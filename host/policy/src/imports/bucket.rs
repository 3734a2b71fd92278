//! A token bucket: a burst at once, and a steady rate per minute. It must not know what it counts.

use scupper_engine::{Time, whole_millis};

const MINUTE: u64 = 60_000;

/// A policy's remaining allowance.
pub(crate) struct Bucket {
    /// In tokens times milliseconds of a minute, so that rounding loses no earned time between two calls.
    earned: u64,
    burst: u64,
    per_minute: u64,
    last: Time,
}

impl Bucket {
    /// A full bucket.
    pub(crate) const fn new(burst: u64, per_minute: u64, now: Time) -> Self {
        let burst = burst.saturating_mul(MINUTE);
        Self {
            earned: burst,
            burst,
            per_minute,
            last: now,
        }
    }

    /// Whether it has this many tokens now.
    pub(crate) fn has(&mut self, tokens: u64, now: Time) -> bool {
        let gone = whole_millis(now.since(self.last));
        self.earned = self
            .earned
            .saturating_add(gone.saturating_mul(self.per_minute))
            .min(self.burst);
        self.last = self.last.max(now);
        self.earned >= tokens.saturating_mul(MINUTE)
    }

    /// Takes this many tokens, or none.
    pub(crate) fn take(&mut self, tokens: u64, now: Time) -> bool {
        let has = self.has(tokens, now);
        if has {
            self.earned = self.earned.saturating_sub(tokens.saturating_mul(MINUTE));
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(1_000_000 + millis)
    }

    #[test]
    fn a_burst_and_then_ten_a_second() {
        let mut bucket = Bucket::new(50, 600, at(0));
        assert_eq!((0..1000).filter(|_| bucket.take(1, at(0))).count(), 50);
        assert_eq!((0..1000).filter(|step| bucket.take(1, at(*step))).count(), 9);
        assert_eq!((0..1000).filter(|_| bucket.take(1, at(3_600_000))).count(), 50);
    }

    #[test]
    fn a_request_beyond_the_capacity_is_always_refused() {
        let mut bucket = Bucket::new(10, 60, at(0));
        assert!(!bucket.take(11, at(3_600_000)));
        assert!(bucket.take(10, at(3_600_000)));
    }

    #[test]
    fn a_clock_that_is_set_back_earns_nothing() {
        let mut bucket = Bucket::new(5, 60, at(1000));
        while bucket.take(1, at(1000)) {}
        assert!(!bucket.take(1, at(0)));
        assert!(!bucket.take(1, at(1000)));
    }
}
