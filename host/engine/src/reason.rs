//! Why a pod is still there. The list is closed: every pod on the node of a running drain has one of these.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::{Deletion, HookPhase, Pod, SurgeMethod, Time};

/// Between the end of a pod's grace and its disappearance the kubelet kills, unmounts and reports.
pub(crate) const SLACK: Duration = Duration::from_secs(5);

/// Why a pod is still on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No plan names it yet.
    NotPlanned,
    /// No plan names it, because a planner has failed and will be asked again.
    PlannerFailed {
        /// The planner's policy.
        policy: String,
        /// Why it failed.
        message: String,
    },
    /// The plan keeps it here.
    Kept,
    /// Its wave has not begun.
    WaveNotStarted {
        /// The wave.
        wave: String,
    },
    /// A hook must finish first.
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
    /// A disruption budget never allows it: its Deployment is surged, and the pod goes once it is replaced.
    Surging {
        /// The Deployment, as `Deployment namespace/name`.
        workload: String,
        /// How.
        method: SurgeMethod,
    },
    /// The budget's status is not up to date.
    BudgetNotObserved {
        /// The API server's words.
        message: String,
    },
    /// More than one budget selects it, which the Eviction API refuses.
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
    /// The driver has no right to evict it.
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
    /// Another client uncordoned the node: no pod is evicted until it is cordoned again.
    NodeUncordoned,
    /// It came back to the cordoned node after its controller's pods were evicted as often as the settings say. It
    /// stays, and the drain does not wait for it.
    KeepsComingBack {
        /// Its controller, such as `StatefulSet db`; empty: it has none.
        controller: String,
        /// The toleration that lets it onto a cordoned node; empty: it has none.
        toleration: String,
    },
    /// It came to the cordoned node during the drain, and the settings do not allow its eviction. It stays, and the
    /// drain does not wait for it.
    ArrivedDuringDrain {
        /// Why it may not be evicted.
        message: String,
        /// The toleration that lets it onto a cordoned node; empty: it has none.
        toleration: String,
    },
    /// The driver is shutting down and evicts no further pod.
    DriverStopping,
    /// The plan does not allow it to leave.
    Refused {
        /// The policy that decided so; empty: the host's own filters did.
        policy: String,
        /// Why.
        message: String,
    },
}

impl Reason {
    /// Why a pod is still there that is being deleted.
    pub fn ending(pod: &Pod, deletion: Deletion, now: Time) -> Self {
        if now < deletion.at + SLACK {
            return Self::Terminating { until: deletion.at };
        }
        Self::TerminatingPastGrace {
            since: deletion.at,
            finalizers: pod.finalizers.join(", "),
        }
    }

    /// The pod stays on the node, and the drain does not wait for it.
    pub const fn stays(&self) -> bool {
        matches!(
            self,
            Self::Kept | Self::KeepsComingBack { .. } | Self::ArrivedDuringDrain { .. }
        )
    }

    /// In one CamelCase word, for conditions, Events and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotPlanned => "NotPlanned",
            Self::PlannerFailed { .. } => "PlannerFailed",
            Self::Kept => "Kept",
            Self::WaveNotStarted { .. } => "WaveNotStarted",
            Self::HookRunning { .. } => "HookRunning",
            Self::ParallelLimit => "ParallelLimit",
            Self::EvictionRequested => "EvictionRequested",
            Self::BudgetExhausted { .. } => "BudgetExhausted",
            Self::Surging { .. } => "Surging",
            Self::BudgetNotObserved { .. } => "BudgetNotObserved",
            Self::MoreThanOneBudget { .. } => "MoreThanOneBudget",
            Self::Throttled { .. } => "Throttled",
            Self::EvictionRefused { .. } => "EvictionRefused",
            Self::NamespaceTerminating => "NamespaceTerminating",
            Self::Forbidden { .. } => "Forbidden",
            Self::Unreachable { .. } => "Unreachable",
            Self::UidDisproved => "UidDisproved",
            Self::Terminating { .. } => "Terminating",
            Self::TerminatingPastGrace { .. } => "TerminatingPastGrace",
            Self::AwaitingCompletion => "AwaitingCompletion",
            Self::NodeUncordoned => "NodeUncordoned",
            Self::KeepsComingBack { .. } => "KeepsComingBack",
            Self::ArrivedDuringDrain { .. } => "ArrivedDuringDrain",
            Self::DriverStopping => "DriverStopping",
            Self::Refused { .. } => "Refused",
        }
    }
}

fn write_toleration(f: &mut fmt::Formatter<'_>, toleration: &str) -> fmt::Result {
    if toleration.is_empty() {
        return Ok(());
    }
    write!(f, " (it tolerates {toleration})")
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPlanned => f.write_str("it is being planned"),
            Self::PlannerFailed { policy, message } => {
                write!(
                    f,
                    "the planner of policy {policy} failed and is retried: {message}"
                )
            }
            Self::Kept => f.write_str("the plan keeps it"),
            Self::WaveNotStarted { wave } => write!(f, "wave {wave} has not begun"),
            Self::HookRunning { policy, phase } => {
                write!(f, "the {phase} hook of policy {policy} is running")
            }
            Self::ParallelLimit => f.write_str("as many pods as allowed are being evicted"),
            Self::EvictionRequested => f.write_str("its eviction is requested"),
            Self::BudgetExhausted { budget, message } if budget.is_empty() => {
                write!(f, "a disruption budget blocks it: {message}")
            }
            Self::BudgetExhausted { budget, message } => {
                let numbers = budget_numbers(budget, message);
                let message = numbers.as_deref().unwrap_or(message);
                write!(f, "budget {budget} blocks it: {message}")
            }
            Self::Surging { workload, method } => match method {
                SurgeMethod::Restart => write!(f, "{workload} is restarted to replace it elsewhere"),
                SurgeMethod::Scale => write!(f, "{workload} gets one replica more, on another node"),
            },
            Self::BudgetNotObserved { message } => {
                write!(f, "its disruption budget is not up to date: {message}")
            }
            Self::MoreThanOneBudget { message } => write!(f, "two disruption budgets select it: {message}"),
            Self::Throttled { message } => write!(f, "the API server asked us to slow down: {message}"),
            Self::EvictionRefused { code, message } => {
                write!(f, "its eviction was refused with {code}: {message}")
            }
            Self::NamespaceTerminating => f.write_str("its namespace is being deleted, which will delete it"),
            Self::Forbidden { message } => write!(f, "no right to evict it: {message}"),
            Self::Unreachable { message } => write!(f, "the API server did not answer: {message}"),
            Self::UidDisproved => f.write_str("gone according to the API server, not yet in the watch"),
            Self::Terminating { .. } => f.write_str("terminating"),
            Self::TerminatingPastGrace { finalizers, .. } if finalizers.is_empty() => {
                f.write_str("still terminating after its grace period")
            }
            Self::TerminatingPastGrace { finalizers, .. } => {
                write!(
                    f,
                    "still terminating after its grace period; finalizers: {finalizers}"
                )
            }
            Self::AwaitingCompletion => f.write_str("the plan lets it finish by itself"),
            Self::NodeUncordoned => {
                f.write_str("the node was uncordoned outside Scupper; cordon it again to continue")
            }
            Self::KeepsComingBack {
                controller,
                toleration,
            } => {
                let who = if controller.is_empty() { "it" } else { controller };
                write!(f, "{who} came back to the cordoned node after an eviction")?;
                write_toleration(f, toleration)?;
                f.write_str("; it stays, and the drain does not wait for it")
            }
            Self::ArrivedDuringDrain { message, toleration } => {
                f.write_str("it came to the cordoned node during the drain")?;
                write_toleration(f, toleration)?;
                write!(
                    f,
                    " and may not be evicted: {message}; it stays, and the drain does not wait for it"
                )
            }
            Self::DriverStopping => f.write_str("the driver is stopping; the next one continues"),
            Self::Refused { policy, message } => {
                match policy.as_str() {
                    "" => f.write_str("the plan does not allow its eviction")?,
                    policy => write!(f, "policy {policy} does not allow its eviction")?,
                }
                match message.as_str() {
                    "" => Ok(()),
                    message => write!(f, ": {message}"),
                }
            }
        }
    }
}

/// What the API server's sentence says besides the name of the budget, and besides that it refuses.
fn budget_numbers(budget: &str, message: &str) -> Option<String> {
    let (_, said) = message.rsplit_once("The disruption budget ")?;
    let numbers = said.strip_prefix(budget)?.strip_prefix(" needs ")?;
    let (needed, rest) = numbers.split_once(" healthy pods and has ")?;
    let (healthy, rest) = rest.split_once(" currently")?;
    let pods = if needed == "1" { "pod" } else { "pods" };
    Some(format!(
        "it needs {needed} healthy {pods} and has {healthy}{rest}"
    ))
}
