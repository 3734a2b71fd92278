//! A policy that can be called, and what the engine hears when a call fails.

use scupper_engine::{Plan, PlanAnswer, PolicyInfo, StepOutcome};
use scupper_policy_spec::OnFailure;

use crate::guest::Guest;
use crate::{CallError, Description, PlanCall, StepCall, remedy};

/// A policy that can be called.
pub(super) struct Loaded {
    pub(super) guest: Guest,
    pub(super) description: Description,
    pub(super) on_failure: OnFailure,
}

impl Loaded {
    /// What the engine must know of it.
    pub(super) fn info(&self) -> PolicyInfo {
        PolicyInfo {
            name: self.description.name.clone(),
            planner: self.description.planner,
            phases: self.description.phases.clone(),
            node_selector: self.description.node_selector.clone(),
        }
    }

    /// Asks its planner.
    pub(super) async fn plan(&self, call: &PlanCall<'_>) -> Result<PlanAnswer, CallError> {
        Ok(match self.guest.make_plan(call).await? {
            Ok(plan) => PlanAnswer::Plan(plan),
            Err(message) => PlanAnswer::Refused { message },
        })
    }

    /// Takes one step of its hook.
    pub(super) async fn step(&self, call: &StepCall<'_>) -> Result<StepOutcome, CallError> {
        let outcome = self.guest.step(call).await?;
        let (name, phase) = (&self.description.name, call.step.phase);
        Ok(remedy::answered(self.on_failure.given_up, name, phase, outcome))
    }

    /// What the engine hears when its planner fails.
    pub(super) fn failed_plan(&self, error: &CallError, draft: &Plan) -> PlanAnswer {
        self.unsound(told(error), draft)
    }

    /// What the engine hears when its plan does not hold.
    pub(super) fn unsound(&self, message: String, draft: &Plan) -> PlanAnswer {
        remedy::planner(self.on_failure.planner, &self.description.name, message, draft)
    }

    /// What the engine hears when a step fails.
    pub(super) fn failed_step(&self, error: &CallError) -> StepOutcome {
        remedy::hook(self.on_failure.hooks, &self.description.name, told(error))
    }
}

/// What the engine hears when it asks for a planner that is not there.
pub(super) fn no_planner(name: &str) -> PlanAnswer {
    PlanAnswer::Failed {
        message: absent(name),
        retry_after: None,
    }
}

/// What the engine hears when it asks for a hook that is not there.
pub(super) fn no_hooks(name: &str) -> StepOutcome {
    StepOutcome::Failed {
        message: absent(name),
        retry_after: None,
    }
}

/// The failure as one line, also for the log: whoever debugs the policy looks there.
fn told(error: &CallError) -> String {
    let message = error.to_string();
    tracing::warn!(target: "scupper::policy", policy = %error.policy, function = error.function, "{}", error.fault);
    message
}

fn absent(name: &str) -> String {
    format!("there is no policy `{name}`")
}
