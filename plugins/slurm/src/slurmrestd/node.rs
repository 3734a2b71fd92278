//! A Slurm node as in `GET /nodes/`.
//!
//! Its state is one base state and any flags, in any order. Unknown flags are ignored; with an unknown base state the load is
//! unknown.

use serde::Deserialize;

use super::wire::{lenient, words};

/// Base states in which a node runs no job.
const FREE: [&str; 4] = ["IDLE", "DOWN", "ERROR", "FUTURE"];
/// States and flags of a node with jobs.
const BUSY: [&str; 3] = ["ALLOCATED", "MIXED", "COMPLETING"];
/// Flags of a node whose power changes.
const POWER: [&str; 3] = ["POWERING_UP", "POWERED_DOWN", "POWERING_DOWN"];

/// Flags of a node that reboots on request.
const REBOOT: [&str; 2] = ["REBOOT_REQUESTED", "REBOOT_ISSUED"];

/// The fields of a node that a drain needs.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct SlurmNode {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "words")]
    state: Vec<String>,
    /// The flags in versions before v0.0.39.
    #[serde(default, deserialize_with = "words")]
    state_flags: Vec<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) reason: String,
    /// The user who set the reason.
    #[serde(default, rename = "reason_set_by_user", deserialize_with = "lenient")]
    pub(crate) set_by: String,
}

/// Whether a node may have jobs, by its own state. The list of jobs must agree: the node of a suspended job is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Free,
    Busy(&'static str),
    /// It does not respond to Slurm. Its jobs may still run.
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

    /// Whether it gets no more jobs. A node that is being undrained gets jobs in a moment.
    pub(crate) fn is_draining(&self) -> bool {
        self.has("DRAIN") && !self.has("UNDRAIN")
    }

    /// Whether an operator took it out of service. slurmctld's own reason for a node that does not respond does not count:
    /// such a node comes back by itself.
    pub(crate) fn is_out_of_service(&self) -> bool {
        let words = self.reason.trim();
        (self.has("DOWN") || self.has("FAIL")) && !words.is_empty() && !words.starts_with("Not responding")
    }

    /// Whether an operator marked it as failing: it gets no jobs and does not come back by itself.
    pub(crate) fn is_failing(&self) -> bool {
        self.has("FAIL") && !self.has("DOWN") && self.is_out_of_service()
    }

    /// Whether Slurm may give it jobs now or later.
    pub(crate) fn may_get_jobs(&self) -> bool {
        !self.is_draining() && !self.is_failing()
    }

    /// Whether it reboots on request of a user (`scontrol reboot`), now or when its jobs have ended. Slurm may resume it then.
    pub(crate) fn is_rebooting(&self) -> bool {
        REBOOT.into_iter().any(|word| self.has(word))
    }

    /// Whether its `slurmd` is silent and Slurm has therefore set it down: jobs cannot be there for Slurm.
    pub(crate) fn is_lost(&self) -> bool {
        self.has("DOWN") && self.has("NOT_RESPONDING")
    }

    /// Whether a drain would kill the jobs that the node is being started for.
    pub(crate) fn would_lose_jobs(&self) -> bool {
        self.load() != Load::Free && POWER.into_iter().any(|word| self.has(word))
    }

    /// Its state as text.
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
