//! The state of a pod's Slurm node, from the pod's conditions.
//!
//! slurm-operator sets a condition `SlurmNodeState<Name>` for each current state and flag, and removes all conditions when it
//! does not know the node or cannot reach Slurm. So a missing condition never means idle.

use scupper_sdk::{Condition, Pod};

/// Whether the pod of the Slurm node may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It gets no jobs and has none.
    Drained,
    /// It has jobs; `with` is Slurm's word.
    Busy { with: &'static str, draining: bool },
    /// It has no jobs, but may get some.
    NotDraining,
    /// The conditions do not say.
    Unknown,
}

/// Base states without running jobs. A node that is down has already lost its jobs.
const FREE: [&str; 4] = ["Idle", "Down", "Error", "Future"];
/// States and flags of a node with jobs: on all its processors, on some, or completing.
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
        // A node that is being undrained still has the flag, and gets jobs in a moment.
        let draining = has("Drain") && !has("Undrain");
        if let Some((_, with)) = BUSY.into_iter().find(|(name, _)| has(name)) {
            return Self::Busy { with, draining };
        }
        // The drain flag alone proves nothing: there must also be a base state without jobs.
        if has("Unknown") || !FREE.into_iter().any(has) {
            return Self::Unknown;
        }
        if draining {
            Self::Drained
        } else {
            Self::NotDraining
        }
    }

    /// `is_early`: the drain has just begun. Later, an operator has resumed a node that is not drained.
    pub(crate) fn words(self, is_early: bool) -> String {
        let not = if is_early {
            "Slurm does not drain the node yet"
        } else {
            "Slurm no longer drains the node: drain it there again, or cancel this drain"
        };
        match self {
            Self::Drained => "drained".to_owned(),
            Self::Busy { with, draining: true } => format!("{with}: jobs still run"),
            Self::Busy {
                with,
                draining: false,
            } => format!("{with}: jobs still run, and {not}"),
            Self::NotDraining => format!("no jobs, but {not}"),
            Self::Unknown => {
                "unknown: the SlurmNodeState conditions do not say whether the node has jobs".to_owned()
            }
        }
    }
}
