//! How a drain ended.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::hook::is_of_host;
use crate::{HookPhase, PodRef, Reason, Time, ToUndo, VolumesLeft, named};

/// Begins the message of a planner that lets no drain begin.
pub(crate) const REFUSED: &str = "refused the drain";

/// How many of the pods that may not leave for one reason are named.
const BLOCKED_NAMED: usize = 3;

/// How it ended. Only [`Drained`](Self::Drained) and [`Uncordoned`](Self::Uncordoned) are success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every pod that was to leave is gone.
    Drained,
    /// The hooks have finished, and a cordon of ours is lifted.
    Uncordoned {
        /// The node is still cordoned, because the cordon is not ours.
        cordon_kept: bool,
    },
    /// Pods may not be evicted; found before anything was changed.
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
        /// The hook that the drain waited for at that moment.
        held_up: Option<HeldUp>,
    },
    /// The request was withdrawn.
    Cancelled {
        /// Who said so.
        reason: String,
    },
    /// The request ended before the drain did.
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

/// What a drain waited for when its deadline passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldUp {
    /// The policy whose hook had not finished.
    pub policy: String,
    /// The hook's phase.
    pub phase: HookPhase,
    /// What the hook had reported last: where it stood, and what it waited for. Empty: it had not answered yet.
    pub reported: String,
    /// No pod had been asked to leave.
    pub is_before_evictions: bool,
}

/// A pod that may not leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The pod.
    pub pod: PodRef,
    /// Why it may not leave.
    pub reason: String,
    /// The author of the decision: a policy's name, or `kubectl` for the host's own first draft.
    pub policy: String,
}

/// What a drain has done so far, and how long it was held up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Totals {
    /// Pods that left.
    pub gone: u32,
    /// Those of them that were deleted instead of evicted.
    pub deleted: u32,
    /// Waves that were begun.
    pub waves: u32,
    /// Evictions and deletions asked for, each try counted.
    pub evictions: u32,
    /// The deletions among them.
    pub deletions: u32,
    /// Tries that a disruption budget refused.
    pub budget_refusals: u32,
    /// Hook steps taken.
    pub hook_steps: u32,
    /// How long hooks held the drain up: the time for which at least one was running.
    pub hook_wait: Duration,
    /// How long disruption budgets held the drain up: the time for which at least one pod waited for one.
    pub budget_wait: Duration,
}

/// What a drain did and cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// When it began.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
    /// What it did.
    pub totals: Totals,
    /// Pods that were to stay.
    pub kept: u32,
    /// Pods that came to the cordoned node during the drain and stay, in the order of their names, and why. They are
    /// not among those that the plan keeps.
    pub stayed: Vec<(PodRef, Reason)>,
    /// Pods that were to leave and are still there.
    pub remaining: u32,
    /// How long the node's volumes held the drain up, after its last pod.
    pub volume_wait: Duration,
    /// What was still attached when the drain stopped waiting for volumes; `None`: nothing, or it did not wait.
    pub volumes_left: Option<VolumesLeft>,
    /// What policies have not undone although the node goes back to service, or why an uncordon leaves it.
    pub to_undo: ToUndo,
    /// Policies that keep the node out of service elsewhere, as the drain keeps its cordon: they undo their part at the
    /// uncordon. In the order of their names.
    pub kept_by: Vec<String>,
    /// Pods that were deleted shortly before the deadline, in that order. A process that took the drain over does not
    /// know those of the process before it.
    pub forced: Vec<PodRef>,
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
            Self::Drained => f.write_str("every pod to evict is gone"),
            Self::Uncordoned { cordon_kept: false } => f.write_str("the node takes pods again"),
            Self::Uncordoned { cordon_kept: true } => {
                f.write_str("the hooks have finished; Scupper did not make the cordon, which stays")
            }
            Self::Blocked { pods } => {
                write!(
                    f,
                    "pods cannot be evicted; nothing has changed: {}",
                    by_reason(pods)
                )
            }
            Self::PolicyFailed { policy, message } if is_of_host(policy) => {
                match message.starts_with(REFUSED) {
                    true => write!(f, "Scupper {message}"),
                    false => write!(f, "{policy}: {message}"),
                }
            }
            Self::PolicyFailed { policy, message } => write!(f, "policy {policy}: {message}"),
            Self::DeadlineExceeded { remaining, held_up } => {
                write!(f, "the deadline passed{}", until_then(held_up.as_ref()))?;
                match held_up {
                    Some(HeldUp {
                        is_before_evictions: true,
                        ..
                    }) => Ok(()),
                    _ => write_remaining(f, remaining),
                }
            }
            Self::Cancelled { reason } => write!(f, "cancelled: {reason}"),
            Self::Lost { reason } => write!(f, "the request ended before its work was done: {reason}"),
            Self::Failed { message } => f.write_str(message),
        }
    }
}

/// `shop/a, shop/b: the last replica [keep-labelled]; shop/c: …`
fn by_reason(pods: &[Blocker]) -> String {
    let mut groups: Vec<(&Blocker, Vec<&PodRef>)> = Vec::new();
    for blocker in pods {
        let is_same = |known: &Blocker| (&known.reason, &known.policy) == (&blocker.reason, &blocker.policy);
        match groups.iter_mut().find(|(known, _)| is_same(known)) {
            Some((_, group)) => group.push(&blocker.pod),
            None => groups.push((blocker, Vec::from([&blocker.pod]))),
        }
    }
    let texts = groups.into_iter().map(|(Blocker { reason, policy, .. }, pods)| {
        format!("{}: {reason} [{policy}]", named(pods, BLOCKED_NAMED))
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// What the drain waited for, as the rest of a sentence.
fn until_then(held_up: Option<&HeldUp>) -> String {
    let Some(HeldUp {
        policy,
        phase,
        reported,
        is_before_evictions,
    }) = held_up
    else {
        return String::new();
    };
    let asked = if *is_before_evictions {
        "; no pod was asked to leave"
    } else {
        ""
    };
    if reported.is_empty() {
        format!(" while the {phase} hook of policy {policy} ran{asked}")
    } else {
        format!(" while policy {policy} reported: {reported}{asked}")
    }
}

fn write_remaining(f: &mut fmt::Formatter<'_>, remaining: &[PodRef]) -> fmt::Result {
    match remaining {
        // All are gone and a hook was still at work; or it passed before the pods were seen.
        [] => Ok(()),
        [one] => write!(f, " with one pod still there: {one}"),
        [first, ..] => write!(f, " with {} pods still there, {first} first", remaining.len()),
    }
}
