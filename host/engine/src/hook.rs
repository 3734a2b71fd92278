//! Hooks: what a policy does around a drain, as step functions whose state the host keeps.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::{Time, Uid};

/// The moments at which a policy can act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum HookPhase {
    /// The plan stands and nothing has been changed yet.
    BeforeCordon,
    /// The node is cordoned and no pod has been asked to leave.
    BeforeDrain,
    /// A wave is about to begin.
    BeforeWave,
    /// A pod is about to be asked to leave.
    BeforeEvict,
    /// Every leaving pod is gone; the drain is not yet reported as done.
    AfterDrain,
    /// The drain ended without being done: undo what the policy changed.
    OnCancel,
    /// Maintenance is over; the node is still cordoned.
    BeforeUncordon,
    /// The node takes pods again.
    AfterUncordon,
}

impl HookPhase {
    /// All of them, in the order of a node's way out and back.
    pub const ALL: [Self; 8] = [
        Self::BeforeCordon,
        Self::BeforeDrain,
        Self::BeforeWave,
        Self::BeforeEvict,
        Self::AfterDrain,
        Self::OnCancel,
        Self::BeforeUncordon,
        Self::AfterUncordon,
    ];

    /// Those of an uncordon.
    pub const UNCORDON: [Self; 2] = [Self::BeforeUncordon, Self::AfterUncordon];

    /// A policy undoes in it what it did in the others.
    pub const fn undoes(self) -> bool {
        matches!(self, Self::OnCancel | Self::BeforeUncordon | Self::AfterUncordon)
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// The name it has in the WIT package.
    const fn name(self) -> &'static str {
        match self {
            Self::BeforeCordon => "before-cordon",
            Self::BeforeDrain => "before-drain",
            Self::BeforeWave => "before-wave",
            Self::BeforeEvict => "before-evict",
            Self::AfterDrain => "after-drain",
            Self::OnCancel => "on-cancel",
            Self::BeforeUncordon => "before-uncordon",
            Self::AfterUncordon => "after-uncordon",
        }
    }
}

/// Hooks of the host itself have names with a space, which no policy can have. What they do, the host undoes.
pub(crate) fn is_of_host(policy: &str) -> bool {
    policy.contains(' ')
}

/// The subject of a hook's call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Subject {
    /// The node.
    Node,
    /// A wave, by name.
    Wave(String),
    /// A pod.
    Pod(Uid),
}

/// One call of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HookStep {
    /// The policy.
    pub policy: String,
    /// The moment.
    pub phase: HookPhase,
    /// The subject of the call.
    pub subject: Subject,
    /// The state that the last step of the same hook returned; empty at the first step.
    pub state: Vec<u8>,
    /// The pods that are still to leave, in the order of the plan (see [`Plan::leaving_for`](crate::Plan::leaving_for)).
    pub leaving: Vec<Uid>,
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum StepOutcome {
    /// The hook has finished.
    Done,
    /// Call again.
    Pending {
        /// Passed to the next call.
        state: Vec<u8>,
        /// When to call again. The host bounds it from below and above.
        again_after: Duration,
        /// Its progress, for display.
        progress: String,
        /// What it waits for.
        waiting_for: Vec<WaitingOn>,
    },
    /// It did not work.
    Failed {
        /// Why.
        message: String,
        /// Try again after this time; `None`: the drain cannot continue.
        retry_after: Option<Duration>,
    },
}

/// Something a hook waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WaitingOn {
    /// The object: `namespace/pod`, a job, a server.
    pub what: String,
    /// The awaited change.
    pub detail: String,
    /// Since when, if the policy knows.
    pub since: Option<Time>,
}

impl fmt::Display for HookPhase {
    /// The name it has in the WIT package.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
