//! Calls planners and hooks of policies, in the same way for a drain and for `scupper plan`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use scupper_engine::{
    Answer, Drain, HookStep, Plan, PlanAnswer, PlanFault, Pod, Request, Settings, StepOutcome, Time, Uid,
    check,
};

use crate::node_snapshot::NodeSnapshot;
use scupper_policy::{DrainInfo, PlanCall, StepCall};
use scupper_policy_reload::Session;

/// The engine has not seen the node yet (a restart during a roll-back): try again soon.
const NODE_SOON: Duration = Duration::from_secs(1);

/// Calls a planner.
pub async fn plan(
    policies: &Session,
    drain: DrainInfo<'_>,
    shown: &NodeSnapshot,
    settings: &Settings,
    (policy, draft): (&str, &Plan),
) -> PlanAnswer {
    let Some(node) = shown.node.as_ref() else {
        return PlanAnswer::Failed {
            message: "nothing is known of the node".to_owned(),
            retry_after: None,
        };
    };
    let pods = shown.pods_of(draft);
    let answer = policies
        .plan(PlanCall {
            policy,
            drain,
            node,
            pods: &pods,
            draft,
        })
        .await;
    let unsound = |message| policies.unsound(policy, message, draft);
    checked(answer, draft, (&pods, settings), unsound)
}

/// The answer of an active policy for the engine. The engine also checks every plan, but here the operator's failure policy
/// decides what follows (`unsound`).
pub(crate) fn checked(
    answer: PlanAnswer,
    draft: &Plan,
    (pods, settings): (&[&Pod], &Settings),
    unsound: impl FnOnce(String) -> PlanAnswer,
) -> PlanAnswer {
    match answer {
        PlanAnswer::Plan(plan) => match holds(&plan, draft, pods, settings) {
            Ok(()) => PlanAnswer::Plan(plan),
            Err(fault) => {
                let fault = fault.describe(pods.iter().copied());
                unsound(format!("its plan does not hold: {fault}"))
            }
        },
        other => other,
    }
}

/// Checks a plan. A pod of the draft that is gone meanwhile is not a fault.
fn holds(plan: &Plan, draft: &Plan, pods: &[&Pod], settings: &Settings) -> Result<(), PlanFault> {
    let there: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.id.uid).collect();
    let decided = draft.decisions.iter().map(|decision| &decision.pod);
    let gone: BTreeSet<&Uid> = decided.filter(|uid| !there.contains(uid)).collect();
    let mut plan = Cow::Borrowed(plan);
    if !gone.is_empty() {
        let plan = plan.to_mut();
        plan.decisions.retain(|decision| !gone.contains(&decision.pod));
        for wave in &mut plan.waves {
            wave.pods.retain(|uid| !gone.contains(uid));
        }
    }
    check(&plan, pods.iter().copied(), settings)
}

/// Takes one step of a hook, whose state is of this version.
pub async fn step(
    policies: &Session,
    drain: DrainInfo<'_>,
    shown: &NodeSnapshot,
    (step, state_version): (&HookStep, Option<u32>),
) -> Answer {
    let Some(node) = shown.node.as_ref() else {
        let message = "nothing is known of the node yet".to_owned();
        let outcome = StepOutcome::Failed {
            message,
            retry_after: Some(NODE_SOON),
        };
        return Answer::Step {
            outcome,
            state_version,
        };
    };
    let pods: Vec<_> = shown.pods.iter().collect();
    let call = StepCall {
        step,
        drain,
        node,
        pods: &pods,
    };
    let (outcome, state_version) = policies.step(call, state_version).await;
    Answer::Step {
        outcome,
        state_version,
    }
}

/// The description of the drain for a policy.
pub fn info(request: &Request, started: Time, state: EngineDrainInfo, now: Time) -> DrainInfo<'_> {
    DrainInfo {
        id: &request.id,
        name: &request.name,
        trigger: &request.trigger,
        started,
        found_drained: state.found_drained,
        held: state.held,
        machine_is_off: request.settings.machine_is_off,
        deadline: request.deadline,
        now,
        own_pod: request.settings.own_pod.as_ref().map(|pod| &pod.uid),
        facts: None,
    }
}

/// The part of [`DrainInfo`] that only the engine knows.
#[derive(Clone, Copy)]
pub struct EngineDrainInfo {
    found_drained: bool,
    held: bool,
}

impl EngineDrainInfo {
    /// Of this drain, at the moment.
    pub fn of(drain: &Drain) -> Self {
        Self {
            found_drained: drain.found_drained(),
            held: drain.held(),
        }
    }
}
