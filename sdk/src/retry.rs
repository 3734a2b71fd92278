//! Retries across steps: a step never sleeps, so the hook's state counts the tries.
//!
//! ```
//! use std::time::Duration;
//! use scupper_sdk::{*, http::Request, retry::{Backoff, Retry}, testing::Host};
//! # use scupper_sdk::http::Response;
//! # struct Jobs;
//! # impl Policy for Jobs { fn describe() -> Description { description!("Jobs").wants(Grant::http("POST", "https://jobs.example.com/")) } }
//!
//! const BACKOFF: Backoff = Backoff::from_secs(2).at_most(Duration::from_secs(60)).tries(5);
//!
//! # impl Hooks for Jobs {
//! # fn phases() -> Vec<Phase> { vec![Phase::BeforeDrain] }
//! fn step(call: &Call) -> Outcome {
//!     let retry = Retry::of(&call.state);
//!     match Request::post("https://jobs.example.com/drain").send() {
//!         Ok(response) if response.is_success() => Outcome::Done,
//!         Ok(response) if response.is_transient() => retry.again(&BACKOFF, format!("status {}", response.status)),
//!         Ok(response) => Outcome::failed(format!("status {}", response.status)).into(),
//!         Err(error) if error.is_transient() => retry.again(&BACKOFF, error.to_string()),
//!         Err(error) => Outcome::failed(error.to_string()).into(),
//!     }
//! }
//! # }
//!
//! // The server is overloaded twice, then it accepts the request.
//! let host = Host::new();
//! let mut times = 0;
//! host.on_request(move |_request| {
//!     times += 1;
//!     Ok(Response::new(if times < 3 { 503 } else { 202 }, ""))
//! });
//! let ran = host.run_hook::<Jobs>(Phase::BeforeDrain, Subject::Node, 10);
//! assert_eq!(ran.outcome(), Some(&Outcome::Done));
//! assert_eq!(ran.progress(), ["try 1 of 5: status 503", "try 2 of 5: status 503"]);
//! assert_eq!(ran.took, Duration::from_secs(2 + 4));
//! ```
//!
//! A step with other state stores [`Retry::to_bytes`] as part of it.

use std::time::Duration;

use crate::{
    Outcome,
    http::{Error, Response},
};

/// How long to wait between tries, and how often to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    tries: Option<u32>,
}

/// The number of failed tries so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    failures: u32,
}

impl Backoff {
    /// Waits this many seconds after the first failure, and twice as long after each further one, up to five minutes.
    /// The number of tries is not limited.
    pub const fn from_secs(first: u64) -> Self {
        Self {
            first: Duration::from_secs(first),
            longest: Duration::from_secs(300),
            tries: None,
        }
    }

    /// Sets the longest wait.
    #[must_use]
    pub const fn at_most(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// Sets how often to try before failing for good.
    #[must_use]
    pub const fn tries(self, tries: u32) -> Self {
        Self {
            tries: Some(tries),
            ..self
        }
    }

    /// How long to wait after this many failures; `None` when no try remains.
    fn wait(&self, failures: u32) -> Option<Duration> {
        if self.tries.is_some_and(|tries| failures >= tries) {
            return None;
        }
        let doublings = failures.saturating_sub(1).min(31);
        Some(self.first.saturating_mul(1 << doublings).min(self.longest))
    }
}

impl Retry {
    /// Reads a state that [`Retry::to_bytes`] returned. Any other state counts as no failures.
    pub fn of(state: &[u8]) -> Self {
        state.try_into().map_or_else(
            |_another_format| Self::default(),
            |bytes| Self {
                failures: u32::from_le_bytes(bytes),
            },
        )
    }

    /// The bytes to save in the hook's state.
    pub const fn to_bytes(self) -> [u8; 4] {
        self.failures.to_le_bytes()
    }

    /// The number of failed tries.
    pub const fn failures(self) -> u32 {
        self.failures
    }

    /// Counts a failure. Returns how long to wait before the next try, or `None` when no try remains.
    pub fn failed(&mut self, backoff: &Backoff) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        backoff.wait(self.failures)
    }

    /// Counts a failure, and returns the outcome of a step whose whole state is this `Retry`.
    pub fn again(mut self, backoff: &Backoff, why: impl Into<String>) -> Outcome {
        let why = why.into();
        let Some(wait) = self.failed(backoff) else {
            return Outcome::failed(format!("{why}, after {} tries", self.failures)).into();
        };
        let progress = match backoff.tries {
            Some(tries) => format!("try {} of {tries}: {why}", self.failures),
            None => format!("try {}: {why}", self.failures),
        };
        Outcome::pending(progress)
            .again_after(wait)
            .state(self.to_bytes())
            .into()
    }
}

impl Error {
    /// Whether a retry may succeed. After `Broken` or `Timeout` the request may already have taken effect.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::Broken(_) | Self::Timeout(_) | Self::TooMany(_) | Self::NoSecret(_)
        )
    }
}

impl Response {
    /// Whether a retry may succeed: status 408, 425, 429, 500, 502, 503 or 504.
    pub const fn is_transient(&self) -> bool {
        matches!(self.status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
    }

    /// The delay of the header `Retry-After`, if it is in seconds; a date is ignored.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds: u64 = self.header("retry-after")?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_tries_end() {
        let backoff = Backoff::from_secs(2).at_most(Duration::from_secs(7)).tries(4);
        let mut retry = Retry::default();
        let waits: Vec<_> = (0..5)
            .map(|_| retry.failed(&backoff).map(|wait| wait.as_secs()))
            .collect();
        assert_eq!(waits, [Some(2), Some(4), Some(7), None, None]);
        let endless = Backoff::from_secs(1);
        let mut retry = Retry { failures: u32::MAX };
        assert_eq!(retry.failed(&endless), Some(Duration::from_secs(300)));
    }

    #[test]
    fn a_retry_survives_as_bytes_and_other_state_counts_as_none() {
        let retry = Retry { failures: 7 };
        assert_eq!(Retry::of(&retry.to_bytes()), retry);
        assert_eq!(Retry::of(b""), Retry::default());
        assert_eq!(Retry::of(b"something else"), Retry::default());
    }
}
