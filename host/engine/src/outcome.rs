//! How a drain ended.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Duration, PodRef, Reason, Time};

/// How it ended. Only [`Drained`](Self::Drained) and [`Uncordoned`](Self::Uncordoned) are success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every pod that was to leave is gone.
    Drained,
    /// The hooks are through, and a cordon of ours is lifted.
    Uncordoned {
        /// The node is still cordoned, because the cordon is not ours.
        cordon_kept: bool,
    },
    /// Pods that may not leave, told before anything was changed.
    Blocked {
        /// Every one of them.
        pods: Vec<Blocker>,
    },
    /// A policy refused the drain, failed for good, or made a plan that does not hold.
    PolicyFailed {
        /// The policy.
        policy: String,
        /// Why.
        message: String,
    },
    /// The deadline passed.
    DeadlineExceeded {
        /// The pods that are still there.
        remaining: Vec<PodRef>,
    },
    /// Whoever asked took it back.
    Cancelled {
        /// Who said so.
        reason: String,
    },
    /// The request was over without us.
    Lost {
        /// How we know.
        reason: String,
    },
    /// It cannot be done: no right to, or no such node.
    Failed {
        /// Why.
        message: String,
    },
}

/// A pod that may not leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The pod.
    pub pod: PodRef,
    /// Why it may not leave.
    pub reason: String,
    /// Who says so: a policy's name, or `kubectl` for the host's own first draft.
    pub policy: String,
}

/// What a drain did and cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// When it began.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
    /// Pods that left.
    pub gone: u32,
    /// Pods that were to stay.
    pub kept: u32,
    /// Pods that came to the cordoned node during the drain and stay, in the order of their names, and why. They are
    /// not among those that the plan keeps.
    pub stayed: Vec<(PodRef, Reason)>,
    /// Pods that were to leave and are still there.
    pub remaining: u32,
    /// Waves that were begun.
    pub waves: u32,
    /// Evictions and deletions asked for, each try counted.
    pub evictions: u32,
    /// Tries that a disruption budget refused.
    pub budget_refusals: u32,
    /// Hook steps taken.
    pub hook_steps: u32,
    /// How long hooks held the drain up: the time for which at least one was not through.
    pub hook_wait: Duration,
    /// How long disruption budgets held the drain up: the time for which at least one pod waited for one.
    pub budget_wait: Duration,
}

impl Outcome {
    /// What was asked for has been done.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Drained | Self::Uncordoned { .. })
    }

    /// In one CamelCase word, for conditions, Events and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Drained => "Drained",
            Self::Uncordoned { .. } => "Uncordoned",
            Self::Blocked { .. } => "Blocked",
            Self::PolicyFailed { .. } => "PolicyFailed",
            Self::DeadlineExceeded { .. } => "DeadlineExceeded",
            Self::Cancelled { .. } => "Cancelled",
            Self::Lost { .. } => "Lost",
            Self::Failed { .. } => "Failed",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drained => f.write_str("every pod that was to leave is gone"),
            Self::Uncordoned { cordon_kept: false } => f.write_str("the node takes pods again"),
            Self::Uncordoned { cordon_kept: true } => {
                f.write_str("the hooks are through; the cordon is not ours and stays")
            }
            Self::Blocked { pods } => {
                f.write_str("pods may not leave, and nothing was changed: ")?;
                for (place, blocker) in pods.iter().enumerate() {
                    let separator = if place == 0 { "" } else { "; " };
                    write!(f, "{separator}{blocker}")?;
                }
                Ok(())
            }
            Self::PolicyFailed { policy, message } => write!(f, "policy {policy}: {message}"),
            Self::DeadlineExceeded { remaining } => write_remaining(f, remaining),
            Self::Cancelled { reason } => write!(f, "cancelled: {reason}"),
            Self::Lost { reason } => write!(f, "the request is over without us: {reason}"),
            Self::Failed { message } => write!(f, "it cannot be done: {message}"),
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]", self.pod, self.reason, self.policy)
    }
}

fn write_remaining(f: &mut fmt::Formatter<'_>, remaining: &[PodRef]) -> fmt::Result {
    match remaining {
        // All are gone and a hook was still at work; or it passed before the pods were seen.
        [] => f.write_str("the deadline passed"),
        [one] => write!(f, "the deadline passed with one pod still there: {one}"),
        [first, ..] => write!(
            f,
            "the deadline passed with {} pods still there, {first} first",
            remaining.len()
        ),
    }
}
