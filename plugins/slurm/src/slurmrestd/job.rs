//! A job as `GET /jobs/` tells of it, and whether it may still run on a node.

use serde::Deserialize;

use super::hostlist;
use super::wire::{lenient, number, words};

/// Base states of a job that has ended, or has not begun.
const NOT_RUNNING: [&str; 10] = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PENDING",
    "PREEMPTED",
    "TIMEOUT",
];
/// States and flags of a job that is on its nodes, whatever else is said of it.
const ON_NODE: [&str; 6] = [
    "COMPLETING",
    "CONFIGURING",
    "RUNNING",
    "SIGNALING",
    "STOPPED",
    "SUSPENDED",
];

/// What matters of a job.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Job {
    #[serde(default, rename = "job_id", deserialize_with = "number")]
    id: Option<u64>,
    #[serde(default, rename = "job_state", deserialize_with = "words")]
    state: Vec<String>,
    /// A hostlist expression.
    #[serde(default, deserialize_with = "lenient")]
    nodes: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(default, rename = "user_name", deserialize_with = "lenient")]
    pub(crate) user: String,
    /// In seconds, like all times of Slurm.
    #[serde(default, rename = "start_time", deserialize_with = "number")]
    start: Option<u64>,
    #[serde(default, rename = "end_time", deserialize_with = "number")]
    end: Option<u64>,
    /// Absent: it was not said.
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) requeue: Option<bool>,
}

impl Job {
    /// Its number; nothing that is sent names a job without one.
    pub(crate) fn id(&self) -> u64 {
        self.id.unwrap_or_default()
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.state.iter().any(|known| known == word)
    }

    /// A job of which only its state is known, and on which nodes it was seen before; on none: it may be anywhere.
    pub(crate) fn known(id: u64, state: &[String], nodes: &[&str]) -> Self {
        Self {
            id: Some(id),
            state: state.to_vec(),
            nodes: nodes.join(","),
            ..Self::default()
        }
    }

    /// It may be on this node. Where its list of nodes is missing or cannot be read, it may be anywhere.
    pub(crate) fn may_run_on(&self, node: &str) -> bool {
        may_run(&self.state) && hostlist::contains(&self.nodes, node).unwrap_or(true)
    }

    /// It is on this node: what may be anywhere is not, and nothing is done to it.
    pub(crate) fn is_on(&self, node: &str) -> bool {
        may_run(&self.state) && hostlist::contains(&self.nodes, node) == Some(true)
    }

    /// It is ending already: its processes have been told, or are gone and its epilog runs.
    pub(crate) fn is_completing(&self) -> bool {
        self.has("COMPLETING")
    }

    /// When it began, in milliseconds.
    pub(crate) fn started(&self) -> Option<u64> {
        milliseconds(self.start)
    }

    /// When its time limit ends it at the latest, in milliseconds. `None`: nobody knows.
    pub(crate) fn ends(&self) -> Option<u64> {
        milliseconds(self.end).filter(|_| self.has("RUNNING"))
    }

    /// Its state in words.
    pub(crate) fn state(&self) -> String {
        let known = !self.state.is_empty();
        let words: Vec<_> = self.state.iter().map(|word| word.to_lowercase()).collect();
        if known {
            words.join("+")
        } else {
            "in an unknown state".to_owned()
        }
    }

    /// Its list of nodes can be read.
    pub(crate) fn is_placed(&self, node: &str) -> bool {
        hostlist::contains(&self.nodes, node).is_some()
    }
}

/// A job in this state may be on a node. A state that nobody knows counts: it is not known to have ended.
pub(crate) fn may_run(state: &[String]) -> bool {
    let has = |word: &&str| state.iter().any(|known| known == word);
    ON_NODE.iter().any(has) || !NOT_RUNNING.iter().any(has)
}

/// Zero is how older versions say that a time is not set.
fn milliseconds(seconds: Option<u64>) -> Option<u64> {
    seconds
        .filter(|seconds| *seconds > 0)
        .map(|seconds| seconds.saturating_mul(1000))
}
