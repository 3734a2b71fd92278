//! Policies' log lines: escaped, bounded in length and in number.

use scupper_engine::Time;

use super::bindings::scupper::drain::log::Level;
use super::text::one_line;

/// Bytes of one line.
const LINE_BYTES: usize = 1024;

/// Lines a policy may write at once.
const BURST: u64 = 50;

/// How long one line takes to be earned back: ten a second.
const MILLIS_PER_LINE: u64 = 100;

/// A policy's allowance of log lines: a token bucket.
pub(super) struct Allowance {
    /// In thousandths of what a line costs, so that no earned time is lost between two lines.
    earned: u64,
    last: Time,
    dropped: u64,
}

impl Allowance {
    pub(super) const fn new(now: Time) -> Self {
        Self {
            earned: BURST * MILLIS_PER_LINE,
            last: now,
            dropped: 0,
        }
    }

    /// Whether a line may be written now.
    fn take(&mut self, now: Time) -> bool {
        let most = BURST * MILLIS_PER_LINE;
        self.earned = self
            .earned
            .saturating_add(now.since(self.last).as_millis())
            .min(most);
        self.last = self.last.max(now);
        let rest = self.earned.checked_sub(MILLIS_PER_LINE);
        match rest {
            Some(rest) => self.earned = rest,
            None => self.dropped += 1,
        }
        rest.is_some()
    }

    /// Writes a line, if there is one left.
    pub(super) fn write(&mut self, policy: &str, level: Level, message: &str, now: Time) {
        if !self.take(now) {
            return;
        }
        self.tell_dropped(policy);
        let line = one_line(message, LINE_BYTES);
        match level {
            Level::Debug => tracing::debug!(target: "scupper::policy", policy, "{line}"),
            Level::Info => tracing::info!(target: "scupper::policy", policy, "{line}"),
            Level::Warn => tracing::warn!(target: "scupper::policy", policy, "{line}"),
            Level::Error => tracing::error!(target: "scupper::policy", policy, "{line}"),
        }
    }

    /// Says once how many lines were dropped.
    pub(super) fn tell_dropped(&mut self, policy: &str) {
        let lines = std::mem::take(&mut self.dropped);
        if lines > 0 {
            tracing::warn!(target: "scupper::policy", policy, lines, "the policy writes too much: lines were dropped");
        }
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
        let mut allowance = Allowance::new(at(0));
        let burst = (0..1000).filter(|_| allowance.take(at(0))).count();
        assert_eq!(burst as u64, BURST);
        assert_eq!(allowance.dropped, 1000 - BURST);
        let second = (0..1000).filter(|step| allowance.take(at(*step))).count();
        assert_eq!(second, 9);
        let hour = (0..1000).filter(|_| allowance.take(at(3_600_000))).count();
        assert_eq!(hour as u64, BURST);
    }

    #[test]
    fn a_clock_that_goes_back_earns_nothing() {
        let mut allowance = Allowance::new(at(1000));
        while allowance.take(at(1000)) {}
        assert!(!allowance.take(at(0)));
        assert!(!allowance.take(at(1000)));
    }
}
