//! What the policy edge reports to the driver: each call, each request, each Event, with what it used. It must not know
//! the listener.

use super::usage::{CallResult, Usage};

/// Something a policy did.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// One of its functions was called and is over.
    Called {
        /// The policy.
        policy: &'a str,
        /// SHA-256 of its file, in hex.
        digest: &'a str,
        /// The exported function.
        function: &'static str,
        /// How it ended.
        result: CallResult,
        /// What it used.
        usage: Usage,
    },
    /// It made an HTTP request.
    Requested {
        /// The policy.
        policy: &'a str,
        /// The response's status; `None`: there was no response.
        status: Option<u16>,
    },
    /// It wanted an Event emitted.
    Emitted {
        /// The policy.
        policy: &'a str,
        /// What became of it.
        result: EmitResult,
    },
}

/// What became of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmitResult {
    /// The API server has it.
    Emitted,
    /// It was the same as one shortly before.
    Repeated,
    /// It was refused: no grant, no valid Event, no such pod.
    Refused,
    /// The policy emits too many.
    TooMany,
    /// The API server does not have it.
    Unavailable,
}

/// Hears what policies do. It is called between two instructions of a guest, so it must not take its time.
pub trait Observer: Send + Sync {
    /// A policy did something.
    fn observe(&self, observation: Observation<'_>);
}

/// Nobody listens.
pub(crate) struct NoObserver;

impl Observer for NoObserver {
    fn observe(&self, _observation: Observation<'_>) {}
}

impl EmitResult {
    /// In one word.
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
