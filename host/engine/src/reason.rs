//! Why a pod is still there. The list is closed: every pod on the node of a running drain has one of these.

use alloc::string::String;

use crate::{HookPhase, Time};

/// Why a pod is still on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No plan names it yet.
    NotPlanned,
    /// The plan keeps it here.
    Kept,
    /// Its wave has not begun.
    WaveNotStarted {
        /// The wave.
        wave: String,
    },
    /// A hook must be through first.
    HookRunning {
        /// The hook's policy.
        policy: String,
        /// The hook's phase.
        phase: HookPhase,
    },
    /// As many pods as the wave or the settings allow are leaving already.
    ParallelLimit,
    /// Its eviction has been asked for and not been answered.
    EvictionRequested,
    /// A disruption budget does not allow it now.
    BudgetExhausted {
        /// The budget, when the answer or the watch names it.
        budget: String,
        /// The API server's words.
        message: String,
    },
    /// The budget's status is not up to date.
    BudgetNotObserved {
        /// The API server's words.
        message: String,
    },
    /// More than one budget selects it, which the API server refuses to weigh.
    MoreThanOneBudget {
        /// The API server's words.
        message: String,
    },
    /// The API server asked us to slow down.
    Throttled {
        /// The API server's words.
        message: String,
    },
    /// The answer came from an admission webhook, or is one that we do not know.
    EvictionRefused {
        /// The HTTP status.
        code: u16,
        /// The API server's words.
        message: String,
    },
    /// Its namespace is being deleted, and the namespace's controller will delete it.
    NamespaceTerminating,
    /// We may not evict it.
    Forbidden {
        /// The API server's words.
        message: String,
    },
    /// The API server could not be reached or did not answer in time.
    Unreachable {
        /// What the client says.
        message: String,
    },
    /// A UID precondition failed: the pod we knew should be gone, and the watch has not said so yet.
    UidDisproved,
    /// It is ending.
    Terminating {
        /// The end of its grace by the API server's clock.
        until: Time,
    },
    /// It should have ended.
    TerminatingPastGrace {
        /// The end of its grace by the API server's clock.
        since: Time,
        /// What else holds it, comma separated; empty when nothing does.
        finalizers: String,
    },
    /// The plan lets it end by itself.
    AwaitingCompletion,
    /// Somebody uncordoned the node: no pod is asked to leave until it is cordoned again.
    NodeUncordoned,
    /// Its controller has put it back too often.
    KeepsComingBack,
    /// The driver is shutting down and asks no pod to leave any more.
    DriverStopping,
    /// The plan does not allow it to leave.
    Refused,
}
