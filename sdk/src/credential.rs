//! A credential that another system rejects: one rule for all policies with the key `token-timeout`.
//!
//! If this drain has never seen it accepted, the drain fails before any change. If it was accepted and is rejected now, it may
//! be about to be renewed: the drain waits for `token-timeout`, and then fails. A cancel has no time to wait.
//!
//! ```
//! use scupper_sdk::{Phase, Subject, credential::{Rejected, TokenTimeout}, testing::Host};
//!
//! let host = Host::new();
//! let call = host.call(Phase::BeforeDrain, Subject::Node);
//! let timeout = TokenTimeout::read().unwrap();
//! let mut rejected = Rejected {
//!     error: "Jobs rejects the token",
//!     credential: "token",
//!     system: "Jobs",
//!     was_accepted: false,
//! };
//! // When it was rejected first; a step saves it in its state.
//! let mut since = None;
//! let failure = timeout.wait(&call, &rejected, &mut since).unwrap_err();
//! assert_eq!(failure.message, "Jobs rejects the token");
//! rejected.was_accepted = true;
//! let pending = timeout.wait(&call, &rejected, &mut since).unwrap();
//! assert_eq!(pending.progress, "Jobs rejects the token; waiting for a valid token until 2027-01-15 08:05 UTC");
//! assert_eq!(since, Some(call.drain.now));
//! ```

use std::time::Duration;

use crate::{
    Call, Failure, Outcome, Pending, Phase, Problem, Timestamp, config, log,
    outcome::milliseconds,
    time::{length, moment},
};

/// An automatic renewal takes minutes at most.
const DEFAULT: Duration = Duration::from_secs(300);

/// How long a drain waits for a valid credential: the key `token-timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenTimeout(Duration);

/// A rejected credential.
#[derive(Clone, Copy, Debug)]
pub struct Rejected<'a> {
    /// What the other system says.
    pub error: &'a str,
    /// What it rejects, such as `token`.
    pub credential: &'a str,
    /// The name of the other system.
    pub system: &'a str,
    /// Whether this hook has seen it accepted.
    pub was_accepted: bool,
}

impl Default for TokenTimeout {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl TokenTimeout {
    /// Reads the key; five minutes if it is not set.
    pub fn read() -> Result<Self, Problem> {
        config::time("token-timeout", DEFAULT).map(Self)
    }

    /// The length of the wait.
    pub const fn length(self) -> Duration {
        self.0
    }

    /// The outcome of a step with such an error: the policy adds its state and when to look again. `since` is when the
    /// credential was first rejected; a step in which it is accepted clears it.
    pub fn wait(
        self,
        call: &Call,
        rejected: &Rejected<'_>,
        since: &mut Option<Timestamp>,
    ) -> Result<Pending, Failure> {
        let Rejected {
            error,
            credential,
            system,
            ..
        } = rejected;
        if call.phase == Phase::OnCancel {
            let stays =
                format!("anything that this drain changed in {system} stays until the node is uncordoned");
            return Err(Outcome::failed(format!("{error}; {stays}")));
        }
        if !rejected.was_good(call) {
            return Err(Outcome::failed(*error));
        }
        let began = *since.get_or_insert_with(|| {
            log::warn!("{error}");
            call.drain.now
        });
        let until = began.saturating_add(milliseconds(self.0));
        if until <= call.drain.now {
            let waited = length(self.0);
            return Err(Outcome::failed(format!(
                "{error}; no valid {credential} within {waited} (`token-timeout`)"
            )));
        }
        let until = moment(until);
        let progress = format!("{error}; waiting for a valid {credential} until {until}");
        let what = format!("the {credential} for {system}");
        Ok(Outcome::pending(progress).waiting_for(what, "to be renewed", Some(began)))
    }
}

impl Rejected<'_> {
    /// Whether it was accepted before: in this hook, or in an earlier one of this drain, or for the drain that an uncordon ends.
    fn was_good(&self, call: &Call) -> bool {
        match call.phase {
            Phase::BeforeUncordon | Phase::AfterUncordon => true,
            Phase::BeforeCordon => self.was_accepted,
            phase => self.was_accepted || call.node.own_cordon || phase.follows_before_drain(),
        }
    }
}
