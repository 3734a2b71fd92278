//! How the door closes: asked to stop is not taken back. It goes on answering until a successor is there or the
//! grace is nearly over, is then forgotten by the kubelet, and goes. It must not know how any of this is done.

use std::time::Duration;

use tokio::time::Instant;

/// A successor that listens is found by the kubelet within a second, and registered at once.
const UNTIL_REGISTERED: Duration = Duration::from_secs(3);
/// The kubelet notices within a second that a socket was removed; calls until then are still answered.
const UNTIL_FORGOTTEN: Duration = Duration::from_millis(1500);

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownStep {
    /// Nothing.
    Stay,
    /// The registration sockets are to be removed.
    Deregister,
    /// Everything is to be closed.
    Exit,
}

/// Where the closing stands.
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

    /// The process was asked to stop.
    pub(super) fn ask(&mut self, now: Instant) {
        self.asked.get_or_insert(now);
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// It matters whether a successor is there.
    pub(super) fn wants_successor(&self) -> bool {
        self.deregistered.is_none()
    }

    /// What is to be done now. `busy`: an event of ours is under way, so that calls will come.
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
    fn leaves_at_once_when_nothing_is_going_on() {
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
