//! Counts of everything that the worlds have exercised: a simulation that never meets a fault proves nothing about it.

use std::collections::BTreeMap;
use std::fmt;

use scupper_engine::{Notice, Reason, VolumesLeft};

use crate::crossings;

/// How often each thing happened, by group and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<(&'static str, &'static str), u64>,
}

/// The things that must have happened at least once in a large number of worlds.
pub const EXPECTED: &[(&str, &[&str])] = &[
    (
        "outcome",
        &[
            "Drained",
            "Uncordoned",
            "Blocked",
            "PolicyFailed",
            "DeadlineExceeded",
            "Cancelled",
            "Lost",
            "Failed",
        ],
    ),
    (
        "reason",
        &[
            "NotPlanned",
            "PlannerFailed",
            "Kept",
            "WaveNotStarted",
            "HookRunning",
            "ParallelLimit",
            "EvictionRequested",
            "BudgetExhausted",
            "Surging",
            "BudgetNotObserved",
            "MoreThanOneBudget",
            "Throttled",
            "EvictionRefused",
            "NamespaceTerminating",
            "Forbidden",
            "Unreachable",
            "UidDisproved",
            "Terminating",
            "TerminatingPastGrace",
            "AwaitingCompletion",
            "NodeUncordoned",
            "KeepsComingBack",
            "ArrivedDuringDrain",
            "DriverStopping",
            "Refused",
        ],
    ),
    (
        "answer",
        &[
            "Accepted",
            "NotFound",
            "UidMismatch",
            "BudgetExhausted",
            "BudgetNotObserved",
            "MoreThanOneBudget",
            "Throttled",
            "NamespaceTerminating",
            "Forbidden",
            "Refused",
            "Unreachable",
            "Unreachable, yet done",
            "Refused by a webhook that hangs",
        ],
    ),
    (
        "plan",
        &[
            "Refuses",
            "Fails",
            "Away",
            "Undecided",
            "DecidedTwice",
            "Unknown",
            "UnknownInWave",
            "InNoWave",
            "InTwoWaves",
            "StaysInWave",
            "MirrorLeaves",
            "OwnPodNotLast",
            "WaveName",
            "WaveTwice",
            "NoParallelism",
        ],
    ),
    (
        "crash in",
        &[
            "planning",
            "preparing",
            "cordoning",
            "holding",
            "evicting",
            "detaching",
            "verifying",
            "rolling back",
            "uncordoning",
        ],
    ),
    (
        "crash after command",
        &[
            "plan",
            "step",
            "cordon",
            "save",
            "uncordon",
            "forget",
            "evict",
            "delete",
            "list-pods",
            "list-volumes",
            "take-back",
            "surge",
        ],
    ),
    (
        "node write",
        &[
            "written",
            "conflict",
            "unavailable",
            "unavailable, yet done",
            "rejected",
            "forbidden",
            "no node",
            "another node",
            "after a crash",
        ],
    ),
    (
        "hook",
        &[
            "Done",
            "Pending",
            "Failed, again",
            "Failed",
            "Oversized",
            "Again, for a newcomer",
        ],
    ),
    (
        "watch",
        &[
            "broken",
            "repeated",
            "reordered",
            "old node",
            "late timer",
            "together",
            "early timer",
        ],
    ),
    (
        "others",
        &[
            "Cancel",
            "Lost",
            "Deadline",
            "Pause",
            "Cordon",
            "Uncordon",
            "Touch",
            "Wipe",
            "NodeDeleted",
            "NodeReplaced",
            "Arrival",
            "NamespaceDies",
            "DeletePod",
            "BudgetRelaxed",
            "BudgetDeleted",
            "Crash",
            "Forbidden",
            "ClockStep",
        ],
    ),
    ("clock", &["set back", "set forward"]),
    (
        "surge",
        &[
            "restarted",
            "replaced",
            "raised",
            "taken-back",
            "gave-up",
            "waits for its turn",
            "chosen again",
        ],
    ),
    ("volumes", &["awaited", "unreadable", "detached", "left"]),
    ("forced", &["deleted", "shortened", "overtakes its eviction"]),
    (
        "ending",
        &[
            "resumed",
            "resumed after a cancel",
            "begun anew",
            "taken over with a stale copy",
            "died at its end",
            "uncordon after a drain",
            "drain after a drain",
            "own pod evicted",
            "displaced by another request",
        ],
    ),
    (
        "to undo",
        &[
            "nothing",
            "of a drained node",
            "after a cancel",
            "after a failure",
            "after an uncordon",
            "of a node that is gone",
        ],
    ),
];

impl Coverage {
    pub(crate) fn count(&mut self, group: &'static str, name: &'static str) {
        *self.counts.entry((group, name)).or_default() += 1;
    }

    /// Whether this was counted.
    pub(crate) fn has(&self, counted: (&'static str, &'static str)) -> bool {
        self.counts.contains_key(&counted)
    }

    /// Adds another coverage to this one.
    pub fn add(&mut self, other: &Self) {
        for (key, count) in &other.counts {
            *self.counts.entry(*key).or_default() += count;
        }
    }

    /// Counts notices about volumes.
    pub(crate) fn count_volumes(&mut self, notice: &Notice) {
        let name = match notice {
            Notice::AwaitsVolumes { left, .. } => match left {
                VolumesLeft::Attached(_) => "awaited",
                VolumesLeft::Unknown { .. } => "unreadable",
            },
            Notice::VolumesSettled { left: None } => "detached",
            Notice::VolumesSettled { left: Some(_) } => "left",
            _ => return,
        };
        self.count("volumes", name);
    }

    /// Counts notices about pods that are deleted shortly before the deadline.
    pub(crate) fn count_forced(&mut self, notice: &Notice) {
        let name = match notice {
            Notice::Forced {
                reason: Reason::Terminating { .. } | Reason::TerminatingPastGrace { .. },
                ..
            } => "shortened",
            Notice::Forced { .. } => "deleted",
            _ => return,
        };
        self.count("forced", name);
    }

    /// Counts pods that the planners decide on after the plan was made.
    pub(crate) fn count_newcomers(&mut self, notice: &Notice) {
        if matches!(notice, Notice::Newcomer { .. }) {
            self.count("crossing", "newcomer");
        }
    }

    /// Every expected thing that never happened, and every pair of features that never met.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (group, names) in EXPECTED {
            for name in *names {
                if !self
                    .counts
                    .keys()
                    .any(|(known, what)| known == group && what == name)
                {
                    missing.push(format!("{group}: {name}"));
                }
            }
        }
        let never = crossings::pairs().filter(|pair| !self.has(*pair));
        missing.extend(never.map(|(one, other)| format!("{one} with {other}")));
        missing
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for ((group, name), count) in &self.counts {
            if *group != last {
                if !last.is_empty() {
                    writeln!(f)?;
                }
                write!(f, "{group:>20}: ")?;
                last = group;
            } else {
                write!(f, ", ")?;
            }
            write!(f, "{name} {count}")?;
        }
        writeln!(f)
    }
}
