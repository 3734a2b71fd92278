//! The state of each policy, for people and for machines.

use scupper_engine::Time;
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
    /// The generation that it came with.
    pub generation: u64,
    /// How it stands.
    pub state: SlotState,
    /// Since when it is active.
    pub since: Option<Time>,
    /// SHA-256 of the component before, when there is one to go back to.
    pub previous: Option<String>,
    /// The last candidate that was rejected, or the last reason to go back.
    pub problem: Option<SlotProblem>,
}

impl SlotStatus {
    /// For machines. Moments are milliseconds since 1970.
    pub fn to_json(&self) -> Value {
        let problem = self.problem.as_ref().map(|problem| {
            json!({
                "digest": problem.digest,
                "reason": problem.reason,
                "at": problem.at.as_millis(),
            })
        });
        json!({
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "generation": self.generation,
            "state": self.state.as_str(),
            "since": self.since.map(Time::as_millis),
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

/// What was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotProblem {
    /// SHA-256 of the candidate, in hex, when it could be read.
    pub digest: Option<String>,
    /// What was wrong, and what to do.
    pub reason: String,
    /// When.
    pub at: Time,
}

impl SlotState {
    /// One word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::Degraded => "Degraded",
            Self::RolledBack => "RolledBack",
            Self::Rejected => "Rejected",
        }
    }
}
