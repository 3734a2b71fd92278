//! The engine's inputs. Events may come late, twice or out of order; answers come once, or never after a crash.

use core::time::Duration;

use alloc::string::String;
use alloc::vec::Vec;

use crate::{AttachedVolume, Budget, CommandId, Node, Plan, Pod, StepOutcome, SurgePlan, Time, Uid};

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Event {
    /// The node as it is now, or that there is no such node.
    Node(Option<Node>),
    /// All pods of the node, as one consistent list: the watch's beginning, or after it broke.
    Pods(Vec<Pod>),
    /// A pod of the node is new or has changed.
    PodApplied(Pod),
    /// A pod is gone.
    PodDeleted(Uid),
    /// All budgets that may matter.
    Budgets(Vec<Budget>),
    /// A budget is new or has changed.
    BudgetApplied(Budget),
    /// A budget is gone.
    BudgetDeleted {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// All volumes that are attached to the node now.
    Volumes(Vec<AttachedVolume>),
    /// A command was carried out, or not.
    Answer(CommandId, Answer),
    /// The deadline is now this one.
    Deadline(Option<Time>),
    /// The request is withdrawn: stop, run the cancel hooks, lift our own cordon.
    Cancel {
        /// By whom and why, for display.
        reason: String,
    },
    /// The request ended before the drain did: it failed, expired or vanished. Stop and evict nothing more.
    Lost {
        /// What happened to it, for display.
        reason: String,
    },
    /// The driver is about to stop: evict no further pod, but keep processing events.
    Pause,
    /// How many concurrent eviction requests the API server takes just now.
    EvictionLimit(usize),
    /// What the hooks of this policy have asked about has changed: their next steps need not wait.
    HookDue {
        /// Its name.
        policy: String,
    },
}

/// How a command went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Answer {
    /// To [`Task::Plan`](crate::Task::Plan).
    Plan(PlanAnswer),
    /// To [`Task::Step`](crate::Task::Step). A policy that traps, overruns its time or cannot be called answers `Failed`.
    Step {
        /// How it went.
        outcome: StepOutcome,
        /// Which version of its state the policy writes; `None`: unknown.
        state_version: Option<u32>,
    },
    /// To the writes of the node: done, with the node's new resource version.
    Written {
        /// The node's new `metadata.resourceVersion`.
        version: String,
    },
    /// To the writes of the node: the node has changed since the version they were decided on. The watch reports how.
    WriteConflict,
    /// To the writes of the node: there is no such node any more, or another one has its name.
    NodeGone,
    /// To writes of the node, and to lists: it failed; try again.
    Unavailable {
        /// Why.
        message: String,
    },
    /// To the writes of the node: 401 or 403. The API server answers so for a moment also after a restart, or while
    /// keys rotate, so the write is tried again for [`Settings::forbidden_timeout`](crate::Settings).
    Forbidden {
        /// The server's words.
        message: String,
    },
    /// To the writes of the node: it will never work (invalid, no room for it).
    Rejected {
        /// Why.
        message: String,
    },
    /// To [`Task::ChooseSurges`](crate::Task::ChooseSurges).
    Surges(SurgePlan),
    /// To [`Task::Surge`](crate::Task::Surge): another drain has raised the Deployment, or a rollout of it is under way. Its
    /// turn comes once that is over.
    Busy {
        /// What has it.
        message: String,
    },
    /// To [`Task::Evict`](crate::Task::Evict) and [`Task::Delete`](crate::Task::Delete).
    Evict(EvictAnswer),
    /// To [`Task::ListPods`](crate::Task::ListPods).
    Pods(Vec<Pod>),
    /// To [`Task::ListVolumes`](crate::Task::ListVolumes).
    Volumes(Vec<AttachedVolume>),
}

/// How a planner answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PlanAnswer {
    /// With a plan, which the engine checks.
    Plan(Plan),
    /// It refuses the drain.
    Refused {
        /// Why.
        message: String,
    },
    /// It trapped, overran its time or could not be called.
    Failed {
        /// Why.
        message: String,
        /// Ask again after so long; `None`: a drain that has changed nothing yet ends.
        retry_after: Option<Duration>,
    },
}

/// How the API server answered an eviction or a deletion. The cluster edge classifies; the words are the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EvictAnswer {
    /// 200 or 201: the pod is ending, or gone already.
    Accepted,
    /// 404: no such pod.
    NotFound,
    /// 409: another pod has this name now. The failed precondition has spent the budget for 120 s.
    UidMismatch {
        /// The server's words.
        message: String,
    },
    /// 429 with the cause `DisruptionBudget` and no `Retry-After`.
    BudgetExhausted {
        /// The budget's name, when the cause tells it.
        budget: String,
        /// The server's words.
        message: String,
    },
    /// 429 with the cause `DisruptionBudget` and a `Retry-After`: the budget's status is not up to date.
    BudgetNotObserved {
        /// The server's words.
        message: String,
        /// When to ask again.
        retry_after: Duration,
    },
    /// 500: more than one budget selects the pod.
    MoreThanOneBudget {
        /// The server's words.
        message: String,
    },
    /// 429 without that cause: flow control.
    Throttled {
        /// The server's words.
        message: String,
        /// When to ask again.
        retry_after: Option<Duration>,
    },
    /// 403 with the cause `NamespaceTerminating`.
    NamespaceTerminating {
        /// The server's words.
        message: String,
    },
    /// 401, 403: we may not.
    Forbidden {
        /// The server's words.
        message: String,
    },
    /// Any other refusal: a webhook's 4xx or 5xx, a broken server. Asked again, slowly.
    Refused {
        /// The HTTP status.
        code: u16,
        /// The server's words.
        message: String,
        /// When to ask again, if the server says.
        retry_after: Option<Duration>,
    },
    /// No answer: the connection broke or the time ran out. It may have happened all the same.
    Unreachable {
        /// What the client says.
        message: String,
    },
}
