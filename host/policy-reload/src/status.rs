//! The state of each policy, for users and for programs.

use scupper_common::clock::rfc3339;
use scupper_engine::Time;
use scupper_policy_spec::PolicyMode;
use serde_json::{Value, json};

/// One policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotStatus {
    /// The operator's name for it.
    pub name: String,
    /// Its own version; empty: none was ever active.
    pub version: String,
    /// SHA-256 of the active component, in hex; empty: none was ever active.
    pub digest: String,
    /// Its generation.
    pub generation: u64,
    /// Its state.
    pub state: SlotState,
    /// Whether drains follow the active revision; the default if none was ever active.
    pub mode: PolicyMode,
    /// Since when it is active.
    pub since: Option<Time>,
    /// SHA-256 of the previous component, if a rollback is possible.
    pub previous: Option<String>,
    /// The last rejected candidate, or the last reason for a rollback.
    pub problem: Option<SlotProblem>,
}

impl SlotStatus {
    /// For programs. Times are RFC 3339.
    pub fn to_json(&self) -> Value {
        let problem = self.problem.as_ref().map(|problem| {
            json!({
                "digest": problem.digest,
                "reason": problem.reason,
                "at": rfc3339(problem.at),
            })
        });
        json!({
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "generation": self.generation,
            "state": self.state.as_str(),
            "mode": self.mode.as_str(),
            "since": self.since.map(rfc3339),
            "previous": self.previous,
            "problem": problem,
        })
    }
}

/// The state of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// It runs as configured, as far as the driver could check.
    Active,
    /// The last good revision runs, because the configured one could not be loaded when the driver started.
    Degraded,
    /// The previous revision runs, because the newest failed or an operator rejected it.
    RolledBack,
    /// No revision of it runs: none was ever good.
    Rejected,
}

/// The error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotProblem {
    /// SHA-256 of the candidate, in hex, if it could be read.
    pub digest: Option<String>,
    /// The error and the remedy.
    pub reason: String,
    /// The time.
    pub at: Time,
}

impl SlotState {
    /// The state as one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::Degraded => "Degraded",
            Self::RolledBack => "RolledBack",
            Self::Rejected => "Rejected",
        }
    }
}
