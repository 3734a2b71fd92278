//! The answers to the engine when a policy fails, by the operator's failure policy.
//!
//! A planner's refusal is not a failure: it stays a refusal under any failure policy. If an on-cancel hook gives up,
//! the driver continues without it: the rollback must end.

use std::time::Duration;

use scupper_engine::{HookPhase, Plan, PlanAnswer, StepOutcome};
use scupper_policy_spec::FailurePolicy;

/// When to retry after a failure: a policy may fail because of its input, and the input changes. The drain's deadline
/// ends the retries.
const RETRY: Duration = Duration::from_secs(10);

/// When to ask a planner again for which a fact could not be read. An API server restarts in a few seconds.
const REREAD: Duration = Duration::from_secs(3);

/// The answer when a fact could not be read that a planner asked for. The operator's failure policy does not apply: the
/// policy has not failed, and a drain without it would be another one.
pub(crate) fn unanswered(policy: &str, trouble: &str) -> PlanAnswer {
    tracing::warn!(target: "scupper::policy", policy, "this plan does not count because a fact could not be read: {trouble}");
    PlanAnswer::Failed {
        message: format!("a fact that it asked for could not be read: {trouble}"),
        retry_after: Some(REREAD),
    }
}

/// The answer when a planner trapped, exceeded its limits, or made an invalid plan.
pub(crate) fn planner(
    failure_policy: FailurePolicy,
    policy: &str,
    message: String,
    draft: &Plan,
) -> PlanAnswer {
    let retry_after = match failure_policy {
        FailurePolicy::Refuse => None,
        FailurePolicy::Hold => Some(RETRY),
        FailurePolicy::Ignore => {
            ignored(policy, &message);
            return PlanAnswer::Plan(draft.clone());
        }
    };
    PlanAnswer::Failed { message, retry_after }
}

/// The outcome when a hook trapped or exceeded its limits.
pub(crate) fn hook(failure_policy: FailurePolicy, policy: &str, message: String) -> StepOutcome {
    let retry_after = match failure_policy {
        FailurePolicy::Refuse => None,
        FailurePolicy::Hold => Some(RETRY),
        FailurePolicy::Ignore => {
            ignored(policy, &message);
            return StepOutcome::Done;
        }
    };
    StepOutcome::Failed { message, retry_after }
}

/// The outcome when a hook answered. If it reports a permanent failure, the operator's failure policy decides.
pub(crate) fn answered(
    failure_policy: FailurePolicy,
    policy: &str,
    phase: HookPhase,
    outcome: StepOutcome,
) -> StepOutcome {
    match outcome {
        StepOutcome::Failed {
            message,
            retry_after: None,
        } if phase != HookPhase::OnCancel => hook(failure_policy, policy, message),
        outcome => outcome,
    }
}

fn ignored(policy: &str, message: &str) {
    tracing::warn!(target: "scupper::policy", policy, "the drain continues without it, as its on-failure says: {message}");
}

#[cfg(test)]
mod tests {
    use scupper_engine::{Decision, Uid, Verdict};

    use super::*;

    fn failed(retry_after: Option<Duration>) -> StepOutcome {
        StepOutcome::Failed {
            message: "no job server".to_owned(),
            retry_after,
        }
    }

    #[test]
    fn each_failure_policy_of_a_planner() {
        let decision = Decision {
            pod: Uid::new("a"),
            verdict: Verdict::Keep,
            reason: String::new(),
            policy: "kubectl".to_owned(),
        };
        let draft = Plan {
            decisions: vec![decision],
            ..Plan::default()
        };
        let with = |failure_policy| planner(failure_policy, "p", "trapped".to_owned(), &draft);
        let failed = |retry_after| PlanAnswer::Failed {
            message: "trapped".to_owned(),
            retry_after,
        };
        assert_eq!(with(FailurePolicy::Refuse), failed(None));
        assert_eq!(with(FailurePolicy::Hold), failed(Some(RETRY)));
        assert_eq!(with(FailurePolicy::Ignore), PlanAnswer::Plan(draft.clone()));
    }

    #[test]
    fn each_failure_policy_of_a_hook_that_traps_or_fails() {
        let rows = [
            (FailurePolicy::Refuse, failed(None)),
            (FailurePolicy::Hold, failed(Some(RETRY))),
            (FailurePolicy::Ignore, StepOutcome::Done),
        ];
        for (failure_policy, wanted) in rows {
            let message = "no job server".to_owned();
            assert_eq!(hook(failure_policy, "p", message), wanted, "{failure_policy:?}");
            let gives_up = answered(failure_policy, "p", HookPhase::BeforeDrain, failed(None));
            assert_eq!(gives_up, wanted, "{failure_policy:?}");
        }
    }

    #[test]
    fn other_results_of_a_hook_stay_unchanged() {
        let later = failed(Some(Duration::from_secs(3)));
        for failure_policy in [FailurePolicy::Refuse, FailurePolicy::Hold, FailurePolicy::Ignore] {
            let stands = |phase, outcome: StepOutcome| {
                assert_eq!(
                    answered(failure_policy, "p", phase, outcome.clone()),
                    outcome,
                    "{failure_policy:?}"
                );
            };
            stands(HookPhase::BeforeDrain, later.clone());
            stands(HookPhase::BeforeDrain, StepOutcome::Done);
            stands(HookPhase::OnCancel, failed(None));
        }
    }
}
