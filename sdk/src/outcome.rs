//! Constructors of the outcomes of a hook's step.

use std::time::Duration;

use crate::{Failure, Outcome, Pending, Timestamp, WaitingOn};

/// The default delay before the next call.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

impl Outcome {
    /// The hook has not finished. `progress` says how far it is, for people.
    ///
    /// ```
    /// # use scupper_sdk::{Call, Outcome};
    /// # use std::time::Duration;
    /// fn step(call: &Call) -> Outcome {
    ///     Outcome::pending("1 of 2 jobs has ended")
    ///         .again_after(Duration::from_secs(10))
    ///         .waiting_for("job 4711", "is running", Some(call.drain.started))
    ///         .into()
    /// }
    /// ```
    pub fn pending(progress: impl Into<String>) -> Pending {
        Pending {
            state: Vec::new(),
            again_after: milliseconds(AGAIN_AFTER),
            progress: progress.into(),
            waiting_for: Vec::new(),
        }
    }

    /// The hook failed for good, and so does the drain. Add [`Failure::retry_after`] to retry instead.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            retry_after: None,
        }
    }
}

impl Pending {
    /// When to call again; the default is five seconds.
    #[must_use]
    pub fn again_after(mut self, after: Duration) -> Self {
        self.again_after = milliseconds(after);
        self
    }

    /// Saves this state for the next call: at most 1024 bytes.
    #[must_use]
    pub fn state(mut self, state: impl Into<Vec<u8>>) -> Self {
        self.state = state.into();
        self
    }

    /// Adds what the hook waits for, what has to happen, and since when it waits.
    #[must_use]
    pub fn waiting_for(
        mut self,
        what: impl Into<String>,
        detail: impl Into<String>,
        since: Option<Timestamp>,
    ) -> Self {
        self.waiting_for.push(WaitingOn {
            what: what.into(),
            detail: detail.into(),
            since,
        });
        self
    }
}

impl Failure {
    /// Retries after this delay instead of failing for good.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(milliseconds(after));
        self
    }
}

impl From<Pending> for Outcome {
    fn from(pending: Pending) -> Self {
        Self::Pending(pending)
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A configuration that cannot be read fails the drain: trying again changes nothing.
impl From<crate::Problem> for Outcome {
    fn from(problem: crate::Problem) -> Self {
        Self::failed(problem.to_string()).into()
    }
}

/// An unavailable API server is retried; other errors fail for good.
impl From<crate::cluster::Error> for Outcome {
    fn from(error: crate::cluster::Error) -> Self {
        let failure = Self::failed(error.to_string());
        match error {
            crate::cluster::Error::Unavailable(_) => failure.retry_after(AGAIN_AFTER).into(),
            _ => failure.into(),
        }
    }
}

/// As above; what a step may not ask for any more, it asks for in the next.
impl From<crate::facts::Error> for Outcome {
    fn from(error: crate::facts::Error) -> Self {
        let failure = Self::failed(error.to_string());
        match error {
            crate::facts::Error::Unavailable(_) | crate::facts::Error::TooMany(_) => {
                failure.retry_after(AGAIN_AFTER).into()
            }
            _ => failure.into(),
        }
    }
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
