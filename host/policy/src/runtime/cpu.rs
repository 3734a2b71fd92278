//! The CPU time of one call, on whichever threads it runs and whatever else runs on them.
//!
//! Wall-clock ticks would be wrong: on a busy node, or under the CPU limit of the driver's own pod, a guest that
//! computes for a moment takes a second, and would be stopped for the load of other processes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Counts the CPU time of the polls of one future.
///
/// One thread at a time polls a future, and moving it to another thread orders the two; this code needs no more than
/// that.
#[derive(Default)]
pub(crate) struct CpuTime {
    /// Nanoseconds of the finished polls.
    spent: AtomicU64,
    /// This thread's clock at the start of the current poll.
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

    /// CPU time so far. Only valid during a poll.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    /// CPU time of the finished polls.
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

    /// Computes until this thread has used this much CPU time.
    fn compute(time: Duration) {
        let begun = thread_nanos();
        while u128::from(thread_nanos() - begun) < time.as_nanos() {
            std::hint::black_box(begun);
        }
    }

    #[test]
    fn the_cpu_time_of_polls_adds_up_without_the_pauses_between_them() {
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
