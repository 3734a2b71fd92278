//! Decides when to renew the connection. The kubelet's channel to the driver goes idle after 30 minutes without a call
//! and is not woken before the next claim; the event then fails. It must not know what a connection is.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum time for which unclaimed events delay a renewal: they may stay unclaimed for ever.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Delay before a failed renewal is retried.
const RETRY: Duration = Duration::from_secs(60);

/// The current activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// No event.
    Quiet,
    /// An event waits for its claim.
    Pending,
    /// An event is claimed, or a request runs.
    Busy,
}

/// Tracks when the connection was last known to be awake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    after: Duration,
    used: Instant,
}

impl Rotation {
    pub(super) fn new(after: Duration, now: Instant) -> Self {
        Self { after, used: now }
    }

    /// Records a call, or a new connection.
    pub(super) fn used(&mut self, now: Instant) {
        self.used = now;
    }

    /// Records a failed renewal, to be retried later.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.used = (now + RETRY).checked_sub(self.after).unwrap_or(now);
    }

    /// True if the connection should be renewed now.
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
