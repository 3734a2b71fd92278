//! The drain that a request would get, for `scupper plan`: by the same rules as in the driver, if no other drain ran.

use scupper_engine::Time;
use thiserror::Error;

use super::super::conditions::{ConditionNames, RequestAnswer};
use super::super::request::{ObservedRequest, RequestChange, ServedRequests};
use super::{RequestState, TrackedRequest};
use crate::TriggerRequest;

/// Why a request would get no drain.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoDrain {
    /// There is no such request.
    #[error("it does not exist")]
    Missing,
    /// It is being deleted, which withdraws it.
    #[error("it is being deleted")]
    Deleting,
    /// It has its answer already.
    #[error("its condition {0} is True already")]
    Answered(String),
    /// The driver answers it without a drain.
    #[error("the driver would set its condition {condition} with reason {reason}: {message}")]
    AnsweredAtOnce {
        /// The type of the condition.
        condition: String,
        /// Its reason.
        reason: String,
        /// Its message.
        message: String,
    },
}

/// A drain, and the requests that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedDrain {
    /// The drain, without a deadline.
    pub drain: TriggerRequest,
    /// Its requests.
    pub served: ServedRequests,
}

/// The drain that one of the node's requests would get. `requests`: all of the node.
pub fn planned_drain(
    requests: Vec<ObservedRequest>,
    (namespace, name): (&str, &str),
    names: &ConditionNames,
) -> Result<PlannedDrain, NoDrain> {
    let mut state = RequestState::new(&[], names.clone(), None);
    for request in requests {
        state.handle_change(RequestChange::Applied(request), Time::default());
    }
    state.answer_at_once();
    let wanted = state.requests.values().find(|tracked| {
        let reference = &tracked.observed.reference;
        reference.namespace == namespace && reference.name == name
    });
    let wanted = wanted.ok_or(NoDrain::Missing)?;
    is_drained_for(wanted, names)?;
    let (drain, members) = state.drain_for(&wanted.observed);
    let requests = members.into_values().map(|member| member.joined_with);
    let served = ServedRequests::of(&drain.id, requests);
    Ok(PlannedDrain { drain, served })
}

fn is_drained_for(wanted: &TrackedRequest, names: &ConditionNames) -> Result<(), NoDrain> {
    let TrackedRequest { observed, answer, .. } = wanted;
    if observed.deleting {
        return Err(NoDrain::Deleting);
    }
    if let Some(condition) = names.answered_by(observed) {
        return Err(NoDrain::Answered(condition.to_owned()));
    }
    let (condition, reason, message) = match answer {
        None => return Ok(()),
        Some(RequestAnswer::Complete { reason, message }) => (&names.complete, reason, message),
        Some(RequestAnswer::Failed { reason, message }) => (&names.failed, reason, message),
    };
    Err(NoDrain::AnsweredAtOnce {
        condition: condition.clone(),
        reason: reason.clone(),
        message: message.clone(),
    })
}
