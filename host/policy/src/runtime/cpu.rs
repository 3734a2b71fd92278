//! The CPU time of one call, whatever threads it runs on and whatever else runs on them.
//!
//! Ticks on the wall would not do: on a busy node, or under the CPU limit of the driver's own pod, a guest that computes
//! for a moment is on its way for a second, and would be ended for what others did.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Counts the CPU time of the polls of one future.
///
/// A future is polled by one thread at a time, and whoever moves it to another orders the two; nothing here needs more
/// than that.
#[derive(Default)]
pub(crate) struct CpuTime {
    /// Nanoseconds of the polls that are over.
    spent: AtomicU64,
    /// This thread's clock when the poll that is under way began.
    began: AtomicU64,
}

impl CpuTime {
    /// Counts one poll.
    pub(crate) fn count<R>(&self, poll: impl FnOnce() -> R) -> R {
        self.began.store(thread_nanos(), Ordering::Relaxed);
        let result = poll();
        self.spent.store(self.nanos(), Ordering::Relaxed);
        result
    }

    /// What was spent so far. Only asked from within a poll.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    /// What the polls that are over have spent.
    pub(crate) fn total(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    fn nanos(&self) -> u64 {
        let poll = thread_nanos().saturating_sub(self.began.load(Ordering::Relaxed));
        self.spent.load(Ordering::Relaxed).saturating_add(poll)
    }
}

fn thread_nanos() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(now.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes until this thread has used so much CPU time.
    fn compute(time: Duration) {
        let begun = thread_nanos();
        while u128::from(thread_nanos() - begun) < time.as_nanos() {
            std::hint::black_box(begun);
        }
    }

    #[test]
    fn polls_add_up_and_what_lies_between_them_does_not_count() {
        let cpu = CpuTime::default();
        let part = Duration::from_millis(20);
        cpu.count(|| compute(part));
        compute(Duration::from_millis(200));
        let spent = cpu.count(|| {
            compute(part);
            cpu.spent()
        });
        assert!(spent >= 2 * part && spent < 4 * part, "{spent:?}");
    }
}
