//! Converts a reason to the form in the annotation, and back.

use scupper_engine::{HookPhase, Reason, SurgeMethod, Time};
use serde::{Deserialize, Serialize};

use super::wire::short;

/// A reason by its name, with its facts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WireReason {
    #[serde(rename = "r")]
    name: String,
    /// The policy, the budget, the wave, the controller or the toleration.
    #[serde(skip_serializing_if = "String::is_empty")]
    who: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hook: String,
    /// Text of the server, finalizers, or the method of a surge.
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
}

pub(super) fn to_wire(reason: &Reason) -> WireReason {
    let mut wire = WireReason {
        name: reason.name().to_owned(),
        ..WireReason::default()
    };
    match reason {
        Reason::PlannerFailed { policy, message } | Reason::Refused { policy, message } => {
            (wire.who, wire.text) = (short(policy), short(message));
        }
        Reason::Surging { workload, method } => {
            (wire.who, wire.text) = (short(workload), method.name().to_owned());
        }
        Reason::WaveNotStarted { wave } => wire.who = short(wave),
        Reason::HookRunning { policy, phase } => (wire.who, wire.hook) = (short(policy), phase.to_string()),
        Reason::BudgetExhausted { budget, message } => {
            (wire.who, wire.text) = (short(budget), short(message))
        }
        Reason::BudgetNotObserved { message }
        | Reason::MoreThanOneBudget { message }
        | Reason::Throttled { message }
        | Reason::Forbidden { message }
        | Reason::Unreachable { message } => wire.text = short(message),
        Reason::EvictionRefused { code, message } => (wire.code, wire.text) = (Some(*code), short(message)),
        Reason::KeepsComingBack {
            controller,
            toleration,
        } => (wire.who, wire.text) = (short(controller), short(toleration)),
        Reason::ArrivedDuringDrain { message, toleration } => {
            (wire.who, wire.text) = (short(toleration), short(message));
        }
        Reason::Terminating { until } => wire.at = Some(until.as_millis()),
        Reason::TerminatingPastGrace { since, finalizers } => {
            (wire.at, wire.text) = (Some(since.as_millis()), short(finalizers));
        }
        Reason::NotPlanned
        | Reason::Kept
        | Reason::ParallelLimit
        | Reason::EvictionRequested
        | Reason::NamespaceTerminating
        | Reason::UidDisproved
        | Reason::AwaitingCompletion
        | Reason::NodeUncordoned
        | Reason::DriverStopping => {}
    }
    wire
}

/// Returns `None` for a reason that this build does not know.
pub(super) fn from_wire(wire: WireReason) -> Option<Reason> {
    let WireReason {
        name,
        who,
        hook,
        text: message,
        code,
        at,
    } = wire;
    let at = Time::from_millis(at.unwrap_or_default());
    Some(match name.as_str() {
        "NotPlanned" => Reason::NotPlanned,
        "PlannerFailed" => Reason::PlannerFailed { policy: who, message },
        "Kept" => Reason::Kept,
        "WaveNotStarted" => Reason::WaveNotStarted { wave: who },
        "HookRunning" => Reason::HookRunning {
            policy: who,
            phase: HookPhase::from_name(&hook)?,
        },
        "ParallelLimit" => Reason::ParallelLimit,
        "EvictionRequested" => Reason::EvictionRequested,
        "BudgetExhausted" => Reason::BudgetExhausted { budget: who, message },
        "Surging" => Reason::Surging {
            workload: who,
            method: SurgeMethod::from_name(&message)?,
        },
        "BudgetNotObserved" => Reason::BudgetNotObserved { message },
        "MoreThanOneBudget" => Reason::MoreThanOneBudget { message },
        "Throttled" => Reason::Throttled { message },
        "EvictionRefused" => Reason::EvictionRefused {
            code: code.unwrap_or_default(),
            message,
        },
        "NamespaceTerminating" => Reason::NamespaceTerminating,
        "Forbidden" => Reason::Forbidden { message },
        "Unreachable" => Reason::Unreachable { message },
        "UidDisproved" => Reason::UidDisproved,
        "Terminating" => Reason::Terminating { until: at },
        "TerminatingPastGrace" => Reason::TerminatingPastGrace {
            since: at,
            finalizers: message,
        },
        "AwaitingCompletion" => Reason::AwaitingCompletion,
        "NodeUncordoned" => Reason::NodeUncordoned,
        "KeepsComingBack" => Reason::KeepsComingBack {
            controller: who,
            toleration: message,
        },
        "ArrivedDuringDrain" => Reason::ArrivedDuringDrain {
            message,
            toleration: who,
        },
        "DriverStopping" => Reason::DriverStopping,
        "Refused" => Reason::Refused { policy: who, message },
        _ => return None,
    })
}
