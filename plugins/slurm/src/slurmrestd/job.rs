//! A job as in `GET /jobs/`, and whether it may still run on a node.

use serde::Deserialize;

use super::hostlist;
use super::wire::{lenient, number, words};

/// Base states of a job that has ended or not begun.
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
/// States and flags of a job that is on its nodes, in any combination.
const ON_NODE: [&str; 6] = [
    "COMPLETING",
    "CONFIGURING",
    "RUNNING",
    "SIGNALING",
    "STOPPED",
    "SUSPENDED",
];

/// The fields of a job that a drain needs.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Job {
    #[serde(default, rename = "job_id", deserialize_with = "number")]
    id: Option<u64>,
    #[serde(default, rename = "job_state", deserialize_with = "words")]
    pub(super) state: Vec<String>,
    /// The number of its array; 0 if it is not a task.
    #[serde(default, rename = "array_job_id", deserialize_with = "number")]
    array: Option<u64>,
    #[serde(default, rename = "array_task_id", deserialize_with = "number")]
    task: Option<u64>,
    /// The number of its heterogeneous job; 0 if it is not a part of one.
    #[serde(default, rename = "het_job_id", deserialize_with = "number")]
    heterogeneous: Option<u64>,
    #[serde(default, rename = "het_job_offset", deserialize_with = "number")]
    part: Option<u64>,
    /// Other nodes on which its heterogeneous job runs.
    #[serde(skip)]
    pub(crate) elsewhere: String,
    /// Only its number and state are known.
    #[serde(skip)]
    pub(crate) is_bare: bool,
    /// A hostlist expression.
    #[serde(default, deserialize_with = "lenient")]
    nodes: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(default, rename = "user_name", deserialize_with = "lenient")]
    pub(crate) user: String,
    /// In seconds, like all times in Slurm.
    #[serde(default, rename = "start_time", deserialize_with = "number")]
    start: Option<u64>,
    #[serde(default, rename = "end_time", deserialize_with = "number")]
    end: Option<u64>,
    /// Absent if Slurm does not say.
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) requeue: Option<bool>,
}

impl Job {
    /// Its number; 0 for a job without one, to which nothing is sent.
    pub(crate) fn id(&self) -> u64 {
        self.id.unwrap_or_default()
    }

    /// The number of the heterogeneous job that it is a part of.
    pub(crate) fn heterogeneous(&self) -> Option<u64> {
        self.heterogeneous.filter(|id| *id > 0)
    }

    /// Whether a request for it reaches all parts of its heterogeneous job.
    pub(crate) fn is_first_part(&self) -> bool {
        self.heterogeneous() == Some(self.id())
    }

    /// Its name for people, as `squeue` has it: `4711`, `8_3` for a task of an array, `8+1` for a part of a heterogeneous job.
    pub(crate) fn label(&self) -> String {
        match (self.array(), self.task, self.heterogeneous()) {
            (Some(array), Some(task), _) => format!("{array}_{task}"),
            (_, _, Some(whole)) => format!("{whole}+{}", self.part.unwrap_or_default()),
            _ => self.id().to_string(),
        }
    }

    /// Its name in a request that signals or ends it and no other job. The last task of an array has the number of the
    /// array, which in a request means all tasks. `None`: there is no such name.
    pub(crate) fn address(&self) -> Option<String> {
        match (self.array(), self.task, self.id()) {
            (_, _, 0) => None,
            (Some(array), Some(task), _) => Some(format!("{array}_{task}")),
            (Some(array), None, id) if array == id => None,
            (_, _, id) => Some(id.to_string()),
        }
    }

    fn array(&self) -> Option<u64> {
        self.array.filter(|id| *id > 0)
    }

    /// Its list of nodes.
    pub(crate) fn nodes(&self) -> &str {
        &self.nodes
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.state.iter().any(|known| known == word)
    }

    /// A job with only its state and the nodes on which it was seen before; without nodes it may be anywhere.
    pub(crate) fn known(id: u64, state: &[String], nodes: &[&str]) -> Self {
        Self {
            id: Some(id),
            state: state.to_vec(),
            nodes: nodes.join(","),
            is_bare: true,
            ..Self::default()
        }
    }

    /// Whether it may be on this node. If its list of nodes is missing or cannot be read, it may be anywhere.
    pub(crate) fn may_run_on(&self, node: &str) -> bool {
        may_run(&self.state) && hostlist::contains(&self.nodes, node).unwrap_or(true)
    }

    /// Whether it is certainly on this node. Only such jobs are signalled or ended.
    pub(crate) fn is_on(&self, node: &str) -> bool {
        may_run(&self.state) && hostlist::contains(&self.nodes, node) == Some(true)
    }

    /// Whether it is already ending: its processes were signalled, or are gone and its epilog runs.
    pub(crate) fn is_completing(&self) -> bool {
        self.has("COMPLETING")
    }

    /// When it began, in milliseconds.
    pub(crate) fn started(&self) -> Option<u64> {
        milliseconds(self.start)
    }

    /// When its time limit ends it at the latest, in milliseconds. `None`: unknown.
    pub(crate) fn ends(&self) -> Option<u64> {
        milliseconds(self.end).filter(|_| self.has("RUNNING"))
    }

    /// Its state as text.
    pub(crate) fn state(&self) -> String {
        let known = !self.state.is_empty();
        let words: Vec<_> = self.state.iter().map(|word| word.to_lowercase()).collect();
        if known {
            words.join("+")
        } else {
            "in an unknown state".to_owned()
        }
    }

    /// Whether its list of nodes can be read.
    pub(crate) fn is_placed(&self, node: &str) -> bool {
        hostlist::contains(&self.nodes, node).is_some()
    }
}

/// Whether a job in this state may be on a node. An unknown state counts, because the job may not have ended.
pub(crate) fn may_run(state: &[String]) -> bool {
    let has = |word: &&str| state.iter().any(|known| known == word);
    ON_NODE.iter().any(has) || !NOT_RUNNING.iter().any(has)
}

/// Older versions use zero for a time that is not set.
fn milliseconds(seconds: Option<u64>) -> Option<u64> {
    seconds
        .filter(|seconds| *seconds > 0)
        .map(|seconds| seconds.saturating_mul(1000))
}
