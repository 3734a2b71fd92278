//! Calls of policies, with what was last heard of the node. A dry run and a drain make them alike.

use scupper_engine::{Duration, HookStep, Plan, PlanAnswer, Request, StepOutcome, Time};

use super::view::View;
use crate::policy::{DrainInfo, PlanCall, Session, StepCall};

/// Nothing was heard of the node yet (a restart in the middle of a roll-back): soon.
const NODE_SOON: Duration = Duration::from_secs(1);

/// Asks a planner.
pub(super) async fn plan(
    policies: &Session,
    drain: DrainInfo<'_>,
    view: &View,
    policy: &str,
    draft: &Plan,
) -> PlanAnswer {
    let Some(node) = view.node() else {
        return PlanAnswer::Failed {
            message: "nothing is known of the node".to_owned(),
        };
    };
    let pods = view.pods_of(draft);
    policies
        .plan(PlanCall {
            policy,
            drain,
            node,
            pods: &pods,
            draft,
        })
        .await
}

/// Takes one step of a hook.
pub(super) async fn step(
    policies: &Session,
    drain: DrainInfo<'_>,
    view: &View,
    step: &HookStep,
) -> StepOutcome {
    let Some(node) = view.node() else {
        let message = "nothing is known of the node yet".to_owned();
        return StepOutcome::Failed {
            message,
            retry_after: Some(NODE_SOON),
        };
    };
    let pods: Vec<_> = view.pods().collect();
    policies
        .step(StepCall {
            step,
            drain,
            node,
            pods: &pods,
        })
        .await
}

/// What a policy is told of the drain.
pub(super) fn info(request: &Request, started: Time, now: Time) -> DrainInfo<'_> {
    DrainInfo {
        id: &request.id,
        name: &request.name,
        trigger: &request.trigger,
        started,
        deadline: request.deadline,
        now,
        own_pod: request.settings.own_pod.as_ref().map(|pod| &pod.uid),
    }
}
