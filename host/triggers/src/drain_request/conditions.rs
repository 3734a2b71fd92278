//! What the status of a request should say. `DrainComplete` and `DrainFailed` are only ever written as True, and once:
//! a request that has either is over.

use scupper_api::RequestCondition;
use scupper_engine::{Outcome, Time};

use super::request::ObservedRequest;
use scupper_common::text::one_line;

/// The most bytes of a message.
const MESSAGE_BYTES: usize = 1024;

/// The types of the conditions, and the node for which they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionNames {
    /// The driver's node.
    pub node: String,
    /// The pods that were meant are gone.
    pub complete: String,
    /// The drain runs.
    pub in_progress: String,
    /// A policy holds the drain.
    pub deferred: String,
    /// The drain has ended without success.
    pub failed: String,
}

/// The final answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestAnswer {
    /// The pods that were meant are gone.
    Complete { reason: String, message: String },
    /// They are not.
    Failed { reason: String, message: String },
}

/// How far a request is.
#[derive(Clone, Debug)]
pub(super) enum RequestStage<'a> {
    /// Its drain has not begun: what it waits for.
    Waiting(String),
    /// It is drained for. The hooks that hold the drain.
    Draining(&'a [String]),
    /// It has its answer.
    Answered(&'a RequestAnswer),
}

impl Default for ConditionNames {
    fn default() -> Self {
        Self {
            node: String::new(),
            complete: "DrainComplete".to_owned(),
            in_progress: "DrainInProgress".to_owned(),
            deferred: "DrainDeferred".to_owned(),
            failed: "DrainFailed".to_owned(),
        }
    }
}

/// The reason of `DrainInProgress=True`.
const DRAINING: &str = "Draining";
/// The reason of `DrainInProgress=False` while the request waits.
const WAITING: &str = "Waiting";

impl RequestAnswer {
    /// How the drain ended. `summary`: what it did.
    pub(super) fn of(outcome: &Outcome, summary: &str) -> Self {
        let reason = outcome.name().to_owned();
        match outcome {
            Outcome::Drained => {
                let message = match summary {
                    "" => outcome.to_string(),
                    summary => summary.to_owned(),
                };
                Self::Complete { reason, message }
            }
            _ => Self::Failed {
                reason,
                message: outcome.to_string(),
            },
        }
    }

    pub(super) fn invalid(problem: &str) -> Self {
        Self::Failed {
            reason: "InvalidRequest".to_owned(),
            message: problem.to_owned(),
        }
    }

    pub(super) fn no_pods() -> Self {
        Self::Complete {
            reason: "NoPods".to_owned(),
            message: "the request names no pods, and only those it names are evicted".to_owned(),
        }
    }

    /// The request's own time is over while the drain continues for others.
    pub(super) fn too_late() -> Self {
        Self::Failed {
            reason: "DeadlineExceeded".to_owned(),
            message: "the deadline of this request passed; the drain continues for a later one".to_owned(),
        }
    }
}

impl ConditionNames {
    /// It was answered: now, before, or by another client.
    pub(super) fn is_answered(&self, request: &ObservedRequest) -> bool {
        self.answered_by(request).is_some()
    }

    /// The type of the condition that answers it.
    pub(super) fn answered_by(&self, request: &ObservedRequest) -> Option<&str> {
        let answers = [&self.complete, &self.failed].map(String::as_str);
        answers.into_iter().find(|kind| request.is_true(kind))
    }

    /// Since when a drain of this node runs for it, as its status says.
    pub(super) fn draining_since(&self, request: &ObservedRequest) -> Option<Time> {
        let condition = request.condition(&self.in_progress)?;
        let is_ours = condition.status == "True"
            && condition.reason == DRAINING
            && condition.message == self.draining_message();
        is_ours.then_some(condition.since?)
    }

    /// It waits for its drain to begin, as its status says.
    pub(super) fn is_waiting(&self, request: &ObservedRequest) -> bool {
        let condition = request.condition(&self.in_progress);
        condition.is_some_and(|condition| condition.status == "False" && condition.reason == WAITING)
    }

    /// It names the node: the request may have named another one before.
    fn draining_message(&self) -> String {
        one_line(
            &format!("the driver of node {} drains it", self.node),
            MESSAGE_BYTES,
        )
    }

    /// The condition of a request that is no longer for this node.
    pub(super) fn departed(&self) -> RequestCondition {
        let message = format!("the request is no longer for node {}", self.node);
        condition(&self.in_progress, false, "NodeChanged", &message)
    }

    /// The conditions of a request at this stage.
    pub(super) fn at(&self, stage: &RequestStage<'_>, request: &ObservedRequest) -> Vec<RequestCondition> {
        match stage {
            RequestStage::Waiting(why) => vec![condition(&self.in_progress, false, WAITING, why)],
            RequestStage::Draining(held) => {
                let draining = self.draining_message();
                let mut all = vec![condition(&self.in_progress, true, DRAINING, &draining)];
                if held.is_empty() {
                    all.extend(self.not_deferred(request));
                } else {
                    all.push(condition(&self.deferred, true, "PolicyHolds", &held.join("; ")));
                }
                all
            }
            RequestStage::Answered(answer) => {
                let (kind, reason, message) = match answer {
                    RequestAnswer::Complete { reason, message } => (&self.complete, reason, message),
                    RequestAnswer::Failed { reason, message } => (&self.failed, reason, message),
                };
                let mut all = vec![condition(kind, true, reason, message)];
                if request.condition(&self.in_progress).is_some() {
                    all.push(condition(&self.in_progress, false, reason, message));
                }
                all.extend(self.not_deferred(request));
                all
            }
        }
    }

    /// Only where it was True.
    fn not_deferred(&self, request: &ObservedRequest) -> Option<RequestCondition> {
        let was = request.condition(&self.deferred);
        was.map(|_| condition(&self.deferred, false, "NotHeld", "no policy holds the drain"))
    }
}

fn condition(kind: &str, status: bool, reason: &str, message: &str) -> RequestCondition {
    RequestCondition {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message: one_line(message, MESSAGE_BYTES),
    }
}

/// The difference between what a request says and what it should say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    None,
    /// Only messages differ.
    Text,
    /// A status or a reason differs.
    State,
}

impl Difference {
    pub(super) fn of(request: &ObservedRequest, wanted: &[RequestCondition]) -> Self {
        let mut difference = Self::None;
        for wanted in wanted {
            let old = request.condition(&wanted.kind);
            let status = if wanted.status { "True" } else { "False" };
            match old.filter(|old| old.status == status && old.reason == wanted.reason) {
                None => return Self::State,
                Some(old) if old.message != wanted.message => difference = Self::Text,
                Some(_) => {}
            }
        }
        difference
    }
}
