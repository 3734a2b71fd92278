//! What an answer says, typed by what was asked. An answer of the wrong kind counts as a failure of what was asked.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{Answer, AttachedVolume, EvictAnswer, PlanAnswer, Pod, StepOutcome, SurgePlan};

/// To a step of a hook.
pub(super) struct StepReply {
    pub(super) outcome: StepOutcome,
    /// Which version of its state the policy writes.
    pub(super) state_version: Option<u32>,
}

/// To a write of the node.
pub(super) enum WriteReply {
    /// It is done, and this is the node's new version.
    Written { version: String },
    /// The node has changed since the version that the write was decided on.
    Conflict,
    /// There is no such node any more.
    NodeGone,
    /// 401 or 403.
    Forbidden { message: String },
    /// It will never work.
    Rejected { message: String },
    /// It may have worked.
    Failed { message: String },
}

/// To a surge of a Deployment.
pub(super) enum SurgeReply {
    /// As to a write of the node.
    Write(WriteReply),
    /// Another drain or a rollout has the Deployment.
    Busy { message: String },
}

/// To a request for a list.
pub(super) enum ListReply {
    Pods(Vec<Pod>),
    Failed { message: String },
}

/// To a request for a list of volumes.
pub(super) enum VolumesReply {
    Volumes(Vec<AttachedVolume>),
    Failed { message: String },
}

pub(super) fn to_plan(answer: Answer) -> PlanAnswer {
    match answer {
        Answer::Plan(answer) => answer,
        _ => PlanAnswer::Failed {
            message: String::from("the answer was not a plan"),
            retry_after: None,
        },
    }
}

pub(super) fn to_step(answer: Answer) -> StepReply {
    match answer {
        Answer::Step {
            outcome,
            state_version,
        } => StepReply {
            outcome,
            state_version,
        },
        _ => StepReply {
            outcome: StepOutcome::Failed {
                message: String::from("the answer was not one to a step"),
                retry_after: None,
            },
            state_version: None,
        },
    }
}

pub(super) fn to_write(answer: Answer) -> WriteReply {
    match answer {
        Answer::Written { version } => WriteReply::Written { version },
        Answer::WriteConflict => WriteReply::Conflict,
        Answer::NodeGone => WriteReply::NodeGone,
        Answer::Forbidden { message } => WriteReply::Forbidden { message },
        Answer::Rejected { message } => WriteReply::Rejected { message },
        Answer::Unavailable { message } => WriteReply::Failed { message },
        _ => WriteReply::Failed {
            message: String::from("the answer was not one to a write"),
        },
    }
}

pub(super) fn to_surge(answer: Answer) -> SurgeReply {
    match answer {
        Answer::Busy { message } => SurgeReply::Busy { message },
        answer => SurgeReply::Write(to_write(answer)),
    }
}

/// `None`: it could not be told.
pub(super) fn to_surges(answer: Answer) -> Option<SurgePlan> {
    match answer {
        Answer::Surges(surges) => Some(surges),
        _ => None,
    }
}

pub(super) fn to_eviction(answer: Answer) -> EvictAnswer {
    match answer {
        Answer::Evict(answer) => answer,
        Answer::Unavailable { message } => EvictAnswer::Unreachable { message },
        _ => EvictAnswer::Unreachable {
            message: String::from("the answer was not one to an eviction"),
        },
    }
}

pub(super) fn to_list(answer: Answer) -> ListReply {
    match answer {
        Answer::Pods(pods) => ListReply::Pods(pods),
        Answer::Unavailable { message } | Answer::Rejected { message } => ListReply::Failed { message },
        _ => ListReply::Failed {
            message: String::from("the answer was not a list"),
        },
    }
}

pub(super) fn to_volumes(answer: Answer) -> VolumesReply {
    match answer {
        Answer::Volumes(volumes) => VolumesReply::Volumes(volumes),
        Answer::Unavailable { message } | Answer::Forbidden { message } | Answer::Rejected { message } => {
            VolumesReply::Failed { message }
        }
        _ => VolumesReply::Failed {
            message: String::from("the answer was not a list of volumes"),
        },
    }
}
