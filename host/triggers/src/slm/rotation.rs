//! When a connection is to be renewed. The kubelet's channel to us falls asleep after 30 minutes without a call, is
//! not woken before the next claim, and the event then fails. It must not know what a connection is.

use std::time::Duration;

use tokio::time::Instant;

/// Events that nobody has claimed yet hold a renewal back for so long and no longer: they may wait for ever.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// When a renewal that failed is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// Nothing.
    Quiet,
    /// An event waits to be claimed.
    Pending,
    /// An event is claimed, or work is under way.
    Busy,
}

/// When the connection was last known to be awake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    after: Duration,
    used: Instant,
}

impl Rotation {
    pub(super) fn new(after: Duration, now: Instant) -> Self {
        Self { after, used: now }
    }

    /// A call came, or the connection is new.
    pub(super) fn used(&mut self, now: Instant) {
        self.used = now;
    }

    /// It could not be renewed: to be tried again after a while.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.used = (now + RETRY).checked_sub(self.after).unwrap_or(now);
    }

    /// The connection is to be renewed now.
    pub(super) fn is_due(&self, now: Instant, activity: Activity) -> bool {
        let unused = now.duration_since(self.used);
        match activity {
            Activity::Quiet => unused >= self.after,
            Activity::Pending => unused >= self.after + PATIENCE,
            Activity::Busy => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_due_when_unused_and_never_while_busy() {
        let start = Instant::now() + Duration::from_secs(86_400);
        let mut rotation = Rotation::new(Duration::from_secs(1200), start);
        let at = |minutes: u64| start + Duration::from_secs(minutes * 60);
        assert!(!rotation.is_due(at(19), Activity::Quiet));
        assert!(rotation.is_due(at(20), Activity::Quiet));
        assert!(!rotation.is_due(at(24), Activity::Pending));
        assert!(rotation.is_due(at(25), Activity::Pending));
        assert!(!rotation.is_due(at(600), Activity::Busy));
        rotation.used(at(15));
        assert!(!rotation.is_due(at(34), Activity::Quiet));
        assert!(rotation.is_due(at(35), Activity::Quiet));
        rotation.postpone(at(35));
        assert!(!rotation.is_due(at(35), Activity::Quiet));
        assert!(rotation.is_due(at(36), Activity::Quiet));
    }
}
