//! Makes a span of one command and its answer: an eviction, a step of a hook, a call of a planner, a write to the node.

use scupper_engine::{Answer, EvictAnswer, PlanAnswer, PodRef, StepOutcome, Task, Time};

use super::span::{OpenSpan, SpanId, SpanResult};

/// Opens the span of a command; `None` if the command means nothing to people.
pub(super) fn asked(task: &Task, parent: SpanId, now: Time) -> Option<OpenSpan> {
    let span = |name: String| OpenSpan::begin(SpanId::random(), Some(parent), name, now);
    match task {
        Task::Plan { policy, .. } => Some(span(format!("plan {policy}")).with("scupper.policy", policy)),
        Task::Step { step, .. } => Some(
            span(format!("step {} {}", step.policy, step.phase))
                .with("scupper.policy", &step.policy)
                .with("scupper.hook.phase", &step.phase.to_string()),
        ),
        Task::Evict { pod, .. } | Task::Delete { pod, .. } => Some(of_pod(span(task.name().to_owned()), pod)),
        // A save accompanies every step of a hook.
        Task::Save { .. } => None,
        _ => Some(span(task.name().to_owned())),
    }
}

/// Adds to a span the pod that it concerns.
pub(super) fn of_pod(span: OpenSpan, pod: &PodRef) -> OpenSpan {
    span.with("k8s.namespace.name", &pod.namespace)
        .with("k8s.pod.name", &pod.name)
        .with("k8s.pod.uid", pod.uid.as_str())
}

/// The answer in one word, and the result of the span.
pub(super) fn answered(span: &mut OpenSpan, answer: &Answer) -> SpanResult {
    let (word, went) = match answer {
        Answer::Plan(answer) => planned(answer),
        Answer::Step { outcome, .. } => stepped(outcome),
        Answer::Evict(answer) => {
            if let EvictAnswer::BudgetExhausted { budget, .. } = answer
                && !budget.is_empty()
            {
                span.set_attribute("scupper.budget", budget);
            }
            evicted(answer)
        }
        Answer::Written { .. } => ("written", SpanResult::Ok),
        Answer::Pods(_) | Answer::Volumes(_) => ("listed", SpanResult::Ok),
        Answer::Surges(_) => ("chosen", SpanResult::Ok),
        // It is another drain's turn.
        Answer::Busy { .. } => ("busy", SpanResult::Unset),
        Answer::WriteConflict => ("conflict", SpanResult::Unset),
        Answer::NodeGone => ("node-gone", wrong("the node is gone")),
        Answer::Unavailable { message } => ("unavailable", wrong(message)),
        Answer::Forbidden { message } => ("forbidden", wrong(message)),
        Answer::Rejected { message } => ("rejected", wrong(message)),
    };
    span.set_attribute("scupper.answer", word);
    went
}

fn planned(answer: &PlanAnswer) -> (&'static str, SpanResult) {
    match answer {
        PlanAnswer::Plan(_) => ("plan", SpanResult::Ok),
        // Refusing is the planner's purpose, not an error.
        PlanAnswer::Refused { .. } => ("refused", SpanResult::Unset),
        PlanAnswer::Failed { message, .. } => ("failed", wrong(message)),
    }
}

fn stepped(outcome: &StepOutcome) -> (&'static str, SpanResult) {
    match outcome {
        StepOutcome::Done => ("done", SpanResult::Ok),
        StepOutcome::Pending { .. } => ("pending", SpanResult::Ok),
        StepOutcome::Failed { message, .. } => ("failed", wrong(message)),
    }
}

fn evicted(answer: &EvictAnswer) -> (&'static str, SpanResult) {
    match answer {
        EvictAnswer::Accepted => ("accepted", SpanResult::Ok),
        EvictAnswer::NotFound => ("not-found", SpanResult::Ok),
        // A budget that refuses an eviction is not an error.
        EvictAnswer::UidMismatch { .. } => ("uid-mismatch", SpanResult::Unset),
        EvictAnswer::BudgetExhausted { .. } => ("budget-exhausted", SpanResult::Unset),
        EvictAnswer::BudgetNotObserved { .. } => ("budget-not-observed", SpanResult::Unset),
        EvictAnswer::NamespaceTerminating { .. } => ("namespace-terminating", SpanResult::Unset),
        EvictAnswer::Throttled { .. } => ("throttled", SpanResult::Unset),
        EvictAnswer::MoreThanOneBudget { message } => ("more-than-one-budget", wrong(message)),
        EvictAnswer::Forbidden { message } => ("forbidden", wrong(message)),
        EvictAnswer::Refused { message, .. } => ("refused", wrong(message)),
        EvictAnswer::Unreachable { message } => ("unreachable", wrong(message)),
    }
}

fn wrong(why: &str) -> SpanResult {
    SpanResult::Error(why.to_owned())
}
