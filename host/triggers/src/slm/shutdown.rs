//! Decides how the trigger closes after a stop request, which is final. It answers calls until a successor is running
//! or the grace period is nearly over, then unregisters from the kubelet, and exits. It must not know how any of this
//! is done.

use std::time::Duration;

use tokio::time::Instant;

/// Time for a successor to be registered: the kubelet finds a listening one within a second.
const UNTIL_REGISTERED: Duration = Duration::from_secs(3);
/// Time for the kubelet to unregister the driver: it notices a removed socket within a second, and calls until then are
/// still answered.
const UNTIL_FORGOTTEN: Duration = Duration::from_millis(1500);

/// The next step of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownStep {
    /// Nothing to do.
    Stay,
    /// Remove the registration sockets.
    Deregister,
    /// Close everything.
    Exit,
}

/// The state of the shutdown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shutdown {
    grace: Duration,
    asked: Option<Instant>,
    successor: Option<Instant>,
    deregistered: Option<Instant>,
}

impl Shutdown {
    pub(super) fn new(grace: Duration) -> Self {
        Self {
            grace,
            asked: None,
            successor: None,
            deregistered: None,
        }
    }

    /// Records the stop request.
    pub(super) fn ask(&mut self, now: Instant) {
        self.asked.get_or_insert(now);
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// True if the presence of a successor matters.
    pub(super) fn wants_successor(&self) -> bool {
        self.deregistered.is_none()
    }

    /// Decides the next step. `busy`: an event of ours is under way, so calls will come.
    pub(super) fn step(&mut self, now: Instant, busy: bool, successor: bool) -> ShutdownStep {
        let Some(asked) = self.asked else {
            return ShutdownStep::Stay;
        };
        if let Some(since) = self.deregistered {
            return if now.duration_since(since) >= UNTIL_FORGOTTEN {
                ShutdownStep::Exit
            } else {
                ShutdownStep::Stay
            };
        }
        self.successor = if successor {
            self.successor.or(Some(now))
        } else {
            None
        };
        let replaced = self
            .successor
            .is_some_and(|since| now.duration_since(since) >= UNTIL_REGISTERED);
        if !busy {
            return ShutdownStep::Exit;
        }
        if replaced || now.duration_since(asked) + UNTIL_FORGOTTEN >= self.grace {
            self.deregistered = Some(now);
            return ShutdownStep::Deregister;
        }
        ShutdownStep::Stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> (Shutdown, Instant) {
        let start = Instant::now();
        let mut stopping = Shutdown::new(Duration::from_secs(25));
        assert_eq!(stopping.step(start, true, false), ShutdownStep::Stay);
        stopping.ask(start);
        (stopping, start)
    }

    #[test]
    fn stops_at_once_without_work_in_progress() {
        let (mut stopping, start) = asked();
        assert_eq!(stopping.step(start, false, false), ShutdownStep::Exit);
    }

    #[test]
    fn stays_until_the_grace_is_nearly_over() {
        let (mut stopping, start) = asked();
        let at = |millis: u64| start + Duration::from_millis(millis);
        assert_eq!(stopping.step(at(23_000), true, false), ShutdownStep::Stay);
        assert_eq!(stopping.step(at(23_500), true, false), ShutdownStep::Deregister);
        assert_eq!(stopping.step(at(24_000), true, false), ShutdownStep::Stay);
        assert_eq!(stopping.step(at(25_000), true, false), ShutdownStep::Exit);
    }

    #[test]
    fn hands_over_to_a_successor_that_stays() {
        let (mut stopping, start) = asked();
        let at = |secs: u64| start + Duration::from_secs(secs);
        assert_eq!(stopping.step(at(1), true, true), ShutdownStep::Stay);
        assert_eq!(stopping.step(at(2), true, false), ShutdownStep::Stay);
        assert_eq!(stopping.step(at(3), true, true), ShutdownStep::Stay);
        assert_eq!(stopping.step(at(5), true, true), ShutdownStep::Stay);
        assert_eq!(stopping.step(at(6), true, true), ShutdownStep::Deregister);
    }
}
