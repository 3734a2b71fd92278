//! Policies' log lines: escaped, bounded in length and in number.

use scupper_common::text::one_line;
use scupper_engine::Time;
use scupper_policy_spec::Limits;

use super::bucket::Bucket;
use crate::wit::bindings::scupper::drain::log::Level;

/// Bytes of one line.
const LINE_BYTES: usize = 1024;

/// A policy's allowance of log lines and of their bytes.
pub(crate) struct LogLimiter {
    lines: Bucket,
    bytes: Bucket,
    dropped: u64,
}

impl LogLimiter {
    pub(crate) const fn new(limits: &Limits, now: Time) -> Self {
        let (lines, bytes) = (
            limits.log_lines_per_minute as u64,
            limits.log_bytes_per_minute as u64,
        );
        Self {
            lines: Bucket::new(lines.div_ceil(12), lines, now),
            bytes: Bucket::new(bytes.div_ceil(4), bytes, now),
            dropped: 0,
        }
    }

    /// Whether a line of this many bytes may be written now.
    fn take(&mut self, bytes: usize, now: Time) -> bool {
        let taken = self.bytes.has(bytes as u64, now) && self.lines.take(1, now);
        if taken {
            self.bytes.take(bytes as u64, now);
        } else {
            self.dropped += 1;
        }
        taken
    }

    /// Writes a line, if the allowance permits.
    pub(crate) fn write(&mut self, policy: &str, level: Level, message: &str, now: Time) -> bool {
        // Escaping costs time: a flood must not cost more than the allowed lines.
        if !self.take(message.len().min(LINE_BYTES), now) {
            return false;
        }
        self.tell_dropped(policy);
        let line = one_line(message, LINE_BYTES);
        match level {
            Level::Debug => tracing::debug!(target: "scupper::policy", policy, "{line}"),
            Level::Info => tracing::info!(target: "scupper::policy", policy, "{line}"),
            Level::Warn => tracing::warn!(target: "scupper::policy", policy, "{line}"),
            Level::Error => tracing::error!(target: "scupper::policy", policy, "{line}"),
        }
        true
    }

    /// Logs once how many lines were dropped.
    pub(crate) fn tell_dropped(&mut self, policy: &str) {
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
    fn lines_and_bytes_are_both_counted() {
        let limits = Limits {
            log_lines_per_minute: 120,
            log_bytes_per_minute: 400,
            ..Limits::default()
        };
        let mut allowance = LogLimiter::new(&limits, at(0));
        assert_eq!((0..100).filter(|_| allowance.take(1, at(0))).count(), 10);
        assert_eq!(allowance.dropped, 90);
        // A minute later all lines are available again, and only the bytes limit them.
        assert_eq!((0..100).filter(|_| allowance.take(40, at(60_000))).count(), 2);
        assert!(!allowance.take(40, at(60_000)));
        assert!(allowance.take(20, at(60_000)));
    }
}
