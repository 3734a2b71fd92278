//! A Slurm node as `GET /nodes/` tells of it.
//!
//! Its state is one base state and any flags, in no order to rely on. Flags nobody knows are passed over; a base state
//! nobody knows means that nothing is known.

use serde::Deserialize;

use super::wire::{lenient, words};

/// Base states in which a node runs no job.
const FREE: [&str; 4] = ["IDLE", "DOWN", "ERROR", "FUTURE"];
/// States and flags of a node with jobs.
const BUSY: [&str; 3] = ["ALLOCATED", "MIXED", "COMPLETING"];
/// Flags of a node that is about to have its power.
const POWER: [&str; 3] = ["POWERING_UP", "POWERED_DOWN", "POWERING_DOWN"];

/// What matters of a node.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct SlurmNode {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "words")]
    state: Vec<String>,
    /// Where versions before v0.0.39 keep the flags.
    #[serde(default, deserialize_with = "words")]
    state_flags: Vec<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) reason: String,
    /// Who gave it.
    #[serde(default, rename = "reason_set_by_user", deserialize_with = "lenient")]
    pub(crate) set_by: String,
}

/// Whether a node may have jobs, by its own state. The list of jobs must agree: a suspended job leaves its node idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Free,
    Busy(&'static str),
    /// Slurm does not hear from it. What ran there may still run.
    NotResponding,
    Unknown,
}

impl SlurmNode {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.state
            .iter()
            .chain(&self.state_flags)
            .any(|known| known == word)
    }

    pub(crate) fn load(&self) -> Load {
        if let Some(word) = BUSY.into_iter().find(|word| self.has(word)) {
            return Load::Busy(word);
        }
        if self.has("UNKNOWN") || !FREE.into_iter().any(|word| self.has(word)) {
            return Load::Unknown;
        }
        if self.has("NOT_RESPONDING") {
            return Load::NotResponding;
        }
        Load::Free
    }

    /// It takes no more jobs. One that is being undrained takes some at the next moment.
    pub(crate) fn is_draining(&self) -> bool {
        self.has("DRAIN") && !self.has("UNDRAIN")
    }

    /// An operator took it out of service. What the controller itself writes about a node that went silent is nobody's
    /// decision: such a node comes back by itself.
    pub(crate) fn is_out_of_service(&self) -> bool {
        let words = self.reason.trim();
        (self.has("DOWN") || self.has("FAIL")) && !words.is_empty() && !words.starts_with("Not responding")
    }

    /// An operator marked it as failing: it takes no jobs, and does not come back by itself as one that is down may.
    pub(crate) fn is_failing(&self) -> bool {
        self.has("FAIL") && !self.has("DOWN") && self.is_out_of_service()
    }

    /// A drain would kill the jobs that the node is being started for.
    pub(crate) fn would_lose_jobs(&self) -> bool {
        self.load() != Load::Free && POWER.into_iter().any(|word| self.has(word))
    }

    /// Its state in words.
    pub(crate) fn state(&self) -> String {
        let words: Vec<_> = self
            .state
            .iter()
            .chain(&self.state_flags)
            .map(|word| word.to_lowercase())
            .collect();
        words.join("+")
    }
}
