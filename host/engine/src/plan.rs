//! A plan: what becomes of every pod on the node, why, and in which order the leaving ones leave.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::{HookPhase, Loosened, Subject, SurgePlan, Uid};

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Verdict {
    /// It leaves through the Eviction API, which respects disruption budgets.
    Evict,
    /// It leaves by plain deletion, which does not.
    Delete,
    /// It leaves by itself: the drain waits until its containers have ended.
    AwaitCompletion,
    /// It stays, and the drain does not wait for it.
    Keep,
    /// It may not leave, and the drain may not begin.
    Refuse,
}

/// The verdict on one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Decision {
    /// The pod.
    pub pod: Uid,
    /// What becomes of it.
    pub verdict: Verdict,
    /// Why, for display.
    pub reason: String,
    /// The policy that decided, or `kubectl` for the host's own first draft. The host fills it in.
    pub policy: String,
}

/// Pods that leave together. A wave begins when the one before has gone or its time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Wave {
    /// Its name; unique within the plan.
    pub name: String,
    /// Its pods, in the order in which they are asked to leave.
    pub pods: Vec<Uid>,
    /// How many of its pods may be leaving at once; `None`: all of them.
    pub max_parallel: Option<u32>,
    /// How long it may hold the next wave up; `None`: until its pods are gone.
    pub timeout: Option<Duration>,
    /// No pod of it gets a longer grace period than this; those with a shorter one keep theirs.
    pub max_grace_seconds: Option<u64>,
    /// The policy that made it as it is, as with [`Decision::policy`].
    pub policy: String,
}

/// What becomes of every pod on the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Plan {
    /// One for every pod on the node.
    pub decisions: Vec<Decision>,
    /// Every leaving pod once, in the order of leaving.
    pub waves: Vec<Wave>,
    /// Deployments that are surged so that pods can leave. The host fills it in.
    pub surge: SurgePlan,
    /// Pods that a later policy protects less than an earlier one. The host fills it in.
    pub loosened: Vec<Loosened>,
}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanFault {
    /// A pod on the node has no decision.
    Undecided(Uid),
    /// A pod has two decisions.
    DecidedTwice(Uid),
    /// A decision or a wave names a pod that is not on the node.
    Unknown(Uid),
    /// A leaving pod stands in no wave.
    InNoWave(Uid),
    /// A leaving pod stands in two waves, or twice in one.
    InTwoWaves(Uid),
    /// A pod that stays stands in a wave.
    StaysInWave(Uid),
    /// A mirror pod is to leave.
    MirrorLeaves(Uid),
    /// The driver's own pod is to leave before others.
    OwnPodNotLast(Uid),
    /// Two waves have the same name, or one has none.
    WaveName(String),
    /// A wave lets no pod leave at all.
    NoParallelism(String),
}

impl Verdict {
    /// The pod is to be gone at the end.
    pub const fn leaves(self) -> bool {
        matches!(self, Self::Evict | Self::Delete | Self::AwaitCompletion)
    }
}

impl Plan {
    /// The decision on a pod.
    pub fn decision(&self, pod: &Uid) -> Option<&Decision> {
        self.decisions.iter().find(|decision| &decision.pod == pod)
    }

    /// The pods that are to leave.
    pub fn leaving(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.iter().filter(|decision| decision.verdict.leaves())
    }

    /// The pods that are to leave, as far as a hook is concerned, in the order of leaving: before a wave its pods, in other
    /// phases all. After a cancel, and around an uncordon, none leaves.
    pub fn leaving_for(&self, phase: HookPhase, subject: &Subject) -> impl Iterator<Item = &Uid> {
        let none_leaves = matches!(
            phase,
            HookPhase::OnCancel | HookPhase::BeforeUncordon | HookPhase::AfterUncordon
        );
        let waves = self.waves.iter().filter(move |wave| match subject {
            _ if none_leaves => false,
            Subject::Wave(name) => wave.name == *name,
            Subject::Node | Subject::Pod(_) => true,
        });
        waves.flat_map(|wave| &wave.pods)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Evict => "evict",
            Self::Delete => "delete",
            Self::AwaitCompletion => "await completion",
            Self::Keep => "keep",
            Self::Refuse => "refuse",
        })
    }
}
