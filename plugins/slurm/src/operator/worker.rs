//! What a pod's conditions say about its Slurm node.
//!
//! slurm-operator sets a condition `SlurmNodeState<Name>` for each state and flag that holds, and removes it when it
//! no longer does. When the operator does not know the node, or cannot ask, it removes all of them. So a missing
//! condition never means idle.

use std::fmt;

use scupper_sdk::{Condition, Pod};

/// Whether the Slurm node may lose its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It takes no jobs and has none.
    Drained,
    /// It has jobs; the word is Slurm's.
    Busy { with: &'static str, draining: bool },
    /// It has no jobs, and would still take some.
    NotDraining,
    /// The conditions do not say.
    Unknown,
}

/// Base states in which a node runs no job. A node that is down has lost its jobs already.
const FREE: [&str; 4] = ["Idle", "Down", "Error", "Future"];
/// States and flags of a node with jobs: on all of its processors, on some, or just ending.
const BUSY: [(&str, &str); 3] = [
    ("Allocated", "allocated"),
    ("Mixed", "mixed"),
    ("Completing", "completing"),
];

impl State {
    /// Reads the conditions.
    pub(crate) fn of(pod: &Pod) -> Self {
        let has = |name: &str| {
            pod.condition(&format!("SlurmNodeState{name}"))
                .is_some_and(Condition::is_true)
        };
        // A node that is being undrained still has the flag, and takes jobs at the next moment.
        let draining = has("Drain") && !has("Undrain");
        if let Some((_, with)) = BUSY.into_iter().find(|(name, _)| has(name)) {
            return Self::Busy { with, draining };
        }
        // The drain flag alone says nothing: there must be a base state, and one without jobs.
        if has("Unknown") || !FREE.into_iter().any(has) {
            return Self::Unknown;
        }
        if draining {
            Self::Drained
        } else {
            Self::NotDraining
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drained => f.write_str("drained"),
            Self::Busy { with, draining: true } => write!(f, "{with}: jobs still run"),
            Self::Busy {
                with,
                draining: false,
            } => write!(f, "{with}: jobs still run, and Slurm does not drain it yet"),
            Self::NotDraining => f.write_str("no jobs, but Slurm does not drain it yet"),
            Self::Unknown => {
                f.write_str("unknown: its SlurmNodeState conditions do not say whether it has jobs")
            }
        }
    }
}
