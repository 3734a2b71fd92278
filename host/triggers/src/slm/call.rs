//! Decides the answer to a call of the kubelet: a table from the call, its event and the progress on it to an answer
//! and an effect. It must not know sockets, streams or time.

use std::collections::BTreeMap;

use scupper_api::ClaimStatus;
use scupper_common::text::one_line;
use scupper_engine::{Intent, Outcome};

use super::lifecycle::{LifecycleEvent, valid_flags};

/// A condition reason that graceful node shutdown reserves for itself.
const SHUTDOWN_REASON: &str = "shutdown-drain-started";

/// The most bytes of a name in an error: as many as a valid one can have.
const NAME_BYTES: usize = 253;

/// The method that the kubelet calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// StartLifecycleTransition
    Start,
    /// EndLifecycleTransition
    End {
        /// The kubelet reports that the deadline has passed.
        expired: bool,
    },
}

/// A call of the kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) transition: String,
    pub(super) event: String,
    pub(super) node: String,
    pub(super) start: String,
    pub(super) end: String,
}

/// The answer to the kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Sets the node condition's reason.
    ConditionReason(String),
    /// The kubelet calls again; the condition stays as it is.
    Empty,
    /// The event fails permanently.
    Error(String),
}

/// The driver's identity.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) driver: String,
    pub(super) node: String,
    /// The intents of the known transitions, by name.
    pub(super) intents: BTreeMap<String, Intent>,
}

/// The driver's progress on the event of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventProgress<'a> {
    /// Not begun.
    NotBegun,
    /// Not begun, because the driver has not finished another request.
    DriverBusy,
    /// Another instance of the driver runs or is about to: it stops, or this one does.
    HandingOver,
    /// Begun.
    Running,
    /// Ended.
    Ended(&'a Outcome),
}

/// The effect of a call on the driver, in addition to the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEffect {
    /// Begin a request.
    Begin(Intent),
    /// The deadline has passed: end the request.
    Expire,
}

/// The decision on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallDecision {
    /// An answer, and possibly an effect.
    Answer(Reply, Option<CallEffect>),
    /// The watch has not shown the event yet: answer later.
    EventUnknown,
}

impl Identity {
    /// True if the event is for this driver.
    pub(super) fn owns(&self, event: &LifecycleEvent) -> bool {
        event.node == self.node
            && self.intents.contains_key(&event.transition)
            && event.driver.as_ref().is_none_or(|driver| *driver == self.driver)
    }

    /// Returns the error in a call that is invalid for any event.
    fn refuse(&self, call: &Call) -> Result<Intent, String> {
        let shown = |name: &str| one_line(name, NAME_BYTES);
        if call.node != self.node {
            return Err(format!(
                "driver {} serves node {}, not {}",
                self.driver,
                self.node,
                shown(&call.node)
            ));
        }
        let Some(intent) = self.intents.get(&call.transition) else {
            let known: Vec<_> = self.intents.keys().map(String::as_str).collect();
            return Err(format!(
                "driver {} does not know transition {}; it knows {}",
                self.driver,
                shown(&call.transition),
                known.join(", ")
            ));
        };
        if call.start.is_empty() || call.end.is_empty() || call.start == call.end {
            return Err(format!(
                "transition {} must have a start and an end that differ, not `{}` and `{}`",
                call.transition,
                shown(&call.start),
                shown(&call.end)
            ));
        }
        if call.start == SHUTDOWN_REASON || call.end == SHUTDOWN_REASON {
            return Err(format!(
                "transition {} must not use `{SHUTDOWN_REASON}`: it belongs to graceful node shutdown",
                call.transition
            ));
        }
        Ok(*intent)
    }
}

/// Decides on a call whose event the watch shows as `event`.
pub(super) fn decide(
    identity: &Identity,
    call: &Call,
    event: Option<&LifecycleEvent>,
    progress: EventProgress<'_>,
) -> CallDecision {
    let intent = match identity.refuse(call) {
        Ok(intent) => intent,
        Err(problem) => return CallDecision::Answer(Reply::Error(problem), None),
    };
    let Some(event) = event else {
        return CallDecision::EventUnknown;
    };
    if event.transition != call.transition {
        // Transition names never change, so this is an older event of the same name.
        return CallDecision::EventUnknown;
    }
    if let Some(decision) = reject(identity, event) {
        return decision;
    }
    decide_claimed(call, intent, event, progress)
}

/// Rejects an event that cannot be handled.
fn reject(identity: &Identity, event: &LifecycleEvent) -> Option<CallDecision> {
    let error = |text: String| Some(CallDecision::Answer(Reply::Error(text), None));
    if event.node != identity.node {
        return error(format!(
            "event {} is bound to node {}, not {}",
            event.name, event.node, identity.node
        ));
    }
    match &event.driver {
        Some(driver) if *driver != identity.driver => {
            return error(format!(
                "event {} belongs to driver {driver}, not {}",
                event.name, identity.driver
            ));
        }
        _ => {}
    }
    match &event.claim {
        ClaimStatus::Claimed => None,
        // The watch lags behind the kubelet, or shows an unknown status: the next call decides.
        ClaimStatus::Pending | ClaimStatus::Other(_) | ClaimStatus::Succeeded => {
            Some(CallDecision::Answer(Reply::Empty, None))
        }
        over @ (ClaimStatus::Failed | ClaimStatus::SlaExpired) => {
            error(format!("event {} has ended: {}", event.name, over.as_str()))
        }
    }
}

/// Decides on an event that is claimed for this driver.
fn decide_claimed(
    call: &Call,
    intent: Intent,
    event: &LifecycleEvent,
    progress: EventProgress<'_>,
) -> CallDecision {
    let answer = |reply| CallDecision::Answer(reply, None);
    match progress {
        EventProgress::Ended(outcome) => answer(end_reply(call, event, outcome)),
        // The event is being deleted. It stays during the rollback, so that a restarted driver finds it.
        EventProgress::Running | EventProgress::HandingOver if event.deleting => answer(Reply::Empty),
        _ if event.deleting => answer(Reply::Error(format!("event {} was deleted", event.name))),
        EventProgress::DriverBusy | EventProgress::HandingOver => answer(Reply::Empty),
        EventProgress::Running => match call.method {
            Method::Start => answer(Reply::ConditionReason(call.start.clone())),
            Method::End { expired: false } => answer(Reply::Empty),
            Method::End { expired: true } => CallDecision::Answer(Reply::Empty, Some(CallEffect::Expire)),
        },
        EventProgress::NotBegun => match (event.flags.as_ref(), call.method) {
            (Some(Err(problem)), _) => answer(Reply::Error(problem.clone())),
            (_, method) => begin(call, intent, method),
        },
    }
}

/// Decides on an event for which no request has begun.
fn begin(call: &Call, intent: Intent, method: Method) -> CallDecision {
    match method {
        Method::Start => CallDecision::Answer(
            Reply::ConditionReason(call.start.clone()),
            Some(CallEffect::Begin(intent)),
        ),
        Method::End { expired: false } => CallDecision::Answer(Reply::Empty, Some(CallEffect::Begin(intent))),
        Method::End { expired: true } => CallDecision::Answer(Reply::Empty, None),
    }
}

/// True if the deadline that passed is the event's own, not an earlier one from its flags.
fn is_event_deadline(event: &LifecycleEvent) -> bool {
    let own = valid_flags(event).and_then(|flags| flags.timeout);
    event.sla.is_some() && own.is_none() && !event.deleting
}

/// The prefixes of answers that report the end of a drain, each with the name of that outcome. An observer that follows
/// an event from afar may see them before, or instead of, the drain's own report.
pub const OUTCOME_PREFIXES: [(&str, &str); 4] = [
    (DEADLINE, "DeadlineExceeded"),
    (POLICY, "PolicyFailed"),
    (CANCELLED, "Cancelled"),
    (LOST, "Lost"),
];
const DEADLINE: &str = "the deadline passed";
const POLICY: &str = "policy ";
const CANCELLED: &str = "cancelled: ";
const LOST: &str = "lost: ";

/// The answer after the request ended. The kubelet accepts only success as success.
fn end_reply(call: &Call, event: &LifecycleEvent, outcome: &Outcome) -> Reply {
    match outcome {
        Outcome::Drained | Outcome::Uncordoned { .. } => Reply::ConditionReason(call.end.clone()),
        // The kubelet sets `SlaExpired` itself; an error would make it `Failed`.
        Outcome::DeadlineExceeded { .. } if is_event_deadline(event) => Reply::Empty,
        // It says what it waited for, or only that the deadline passed.
        Outcome::DeadlineExceeded { remaining, held_up } if remaining.is_empty() || held_up.is_some() => {
            Reply::Error(outcome.to_string())
        }
        Outcome::DeadlineExceeded { remaining, .. } => {
            let pods: Vec<_> = remaining.iter().map(ToString::to_string).collect();
            Reply::Error(format!("{DEADLINE}; still there: {}", pods.join(", ")))
        }
        Outcome::Blocked { .. } => Reply::Error(outcome.to_string()),
        Outcome::PolicyFailed { policy, message } => Reply::Error(format!("{POLICY}{policy}: {message}")),
        Outcome::Cancelled { reason } => Reply::Error(format!("{CANCELLED}{reason}")),
        Outcome::Lost { reason } => Reply::Error(format!("{LOST}{reason}")),
        Outcome::Failed { message } => Reply::Error(message.clone()),
    }
}

#[cfg(test)]
mod tests;
