//! How often the states of hooks are saved: each save is a write of the node that every watcher of nodes hears of.

use core::time::Duration;

use crate::Time;

/// So many follow one another as they come: a policy that has several short things to do does them at once.
const BURST: u32 = 10;
/// After that one for so long. It carries the states of all hooks.
const EACH: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SaveLimiter {
    /// When the whole burst is free again.
    rested: Time,
}

impl SaveLimiter {
    /// When the next save may be made.
    pub(super) fn due(&self) -> Time {
        self.rested - EACH.saturating_mul(BURST - 1)
    }

    /// One was made.
    pub(super) fn count(&mut self, now: Time) {
        self.rested = self.rested.max(now) + EACH;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_a_second() {
        let mut save_limiter = SaveLimiter::default();
        let now = Time::from_millis(1_000_000);
        for number in 0..BURST {
            assert!(save_limiter.due() <= now, "number {number}");
            save_limiter.count(now);
        }
        for second in 1..4 {
            let due = now + Duration::from_secs(second);
            assert_eq!(save_limiter.due(), due);
            save_limiter.count(due);
        }
        assert!(save_limiter.due() <= now + Duration::from_secs(60));
    }
}
