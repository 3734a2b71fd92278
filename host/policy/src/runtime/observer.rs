//! Observations that the policy edge reports to the driver: each call, each request, each Event and each
//! question about the cluster, with the resource usage. It must not know the listener.

use scupper_policy_spec::Fact;

use super::usage::{CallResult, Usage};

/// An action of a policy.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// A call of one of its functions has ended.
    Called {
        /// The policy.
        policy: &'a str,
        /// SHA-256 of its file, in hex.
        digest: &'a str,
        /// The exported function.
        function: &'static str,
        /// How it ended.
        result: CallResult,
        /// Its resource usage.
        usage: Usage,
    },
    /// It made an HTTP request.
    Requested {
        /// The policy.
        policy: &'a str,
        /// The response's status; `None`: there was no response.
        status: Option<u16>,
    },
    /// It tried to emit an Event.
    Emitted {
        /// The policy.
        policy: &'a str,
        /// The result.
        result: EmitResult,
    },
    /// It asked about the cluster.
    Asked {
        /// The policy.
        policy: &'a str,
        /// What it asked about.
        fact: Fact,
        /// The result.
        result: AskResult,
    },
}

/// The result of asking for a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AskResult {
    /// The policy has the answer.
    Answered,
    /// There is no such object.
    NotFound,
    /// It could not be read, so the policy makes no plan.
    Unavailable,
    /// The call asked for too much.
    TooMany,
}

/// The result of emitting an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmitResult {
    /// The API server has accepted it.
    Emitted,
    /// It repeats a recent Event.
    Repeated,
    /// It was refused: no grant, no valid Event, no such pod.
    Refused,
    /// The policy emits too many.
    TooMany,
    /// The API server did not accept it.
    Unavailable,
}

/// Receives observations of policies. It runs between two instructions of a guest, so it must return quickly.
pub trait Observer: Send + Sync {
    /// Receives one observation.
    fn observe(&self, observation: Observation<'_>);
}

/// Ignores all observations.
pub(crate) struct NoObserver;

impl Observer for NoObserver {
    fn observe(&self, _observation: Observation<'_>) {}
}

impl AskResult {
    /// As one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NotFound => "not-found",
            Self::Unavailable => "unavailable",
            Self::TooMany => "too-many",
        }
    }
}

impl EmitResult {
    /// As one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Emitted => "emitted",
            Self::Repeated => "repeated",
            Self::Refused => "refused",
            Self::TooMany => "too-many",
            Self::Unavailable => "unavailable",
        }
    }
}
