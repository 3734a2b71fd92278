//! The API server's flow control: it concerns all requests, so no eviction goes out until it is over.

use core::time::Duration;

use alloc::string::String;

use super::backoff::Backoff;
use crate::{Reason, Time};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    until: Time,
    tries: u32,
    message: String,
}

impl Throttle {
    /// Why no eviction may be requested now.
    pub(super) fn holds(&self, now: Time) -> Option<Reason> {
        (now < self.until).then(|| Reason::Throttled {
            message: self.message.clone(),
        })
    }

    pub(super) const fn until(&self) -> Time {
        self.until
    }

    /// An eviction was refused for it: the next one may go out after `wait`, or after a wait that grows.
    pub(super) fn begin(&mut self, now: Time, wait: Option<Duration>, message: String, seed: &str) -> Time {
        let growing = Backoff::THROTTLE.after(now, self.tries, seed);
        let until = wait.map_or(growing, |wait| now + wait);
        if now >= self.until {
            self.tries = self.tries.saturating_add(1);
        }
        self.until = self.until.max(until);
        self.message = message;
        until
    }

    /// An eviction was accepted.
    pub(super) const fn ease(&mut self) {
        self.tries = 0;
    }
}
