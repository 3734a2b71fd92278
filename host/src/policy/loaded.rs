//! A policy that can be called, and what the engine hears when a call fails.

use scupper_engine::{Duration, PlanAnswer, PolicyInfo, StepOutcome};

use super::guest::Guest;
use super::{CallError, Description, PlanCall, StepCall};

/// When a step that trapped or overran is tried again: a policy may fail because of what it was shown, and that
/// changes. The drain's deadline ends it.
const RETRY: Duration = Duration::from_secs(10);

/// A policy that can be called.
pub(super) struct Loaded {
    pub(super) guest: Guest,
    pub(super) description: Description,
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
        self.guest.step(call).await
    }
}

/// What the engine hears of a planner that failed.
pub(super) fn failed_plan(error: &CallError) -> PlanAnswer {
    PlanAnswer::Failed { message: told(error) }
}

/// What the engine hears of a step that failed.
pub(super) fn failed_step(error: &CallError) -> StepOutcome {
    StepOutcome::Failed {
        message: told(error),
        retry_after: Some(RETRY),
    }
}

/// What the engine hears when it asks for a planner that is not there.
pub(super) fn no_planner(name: &str) -> PlanAnswer {
    PlanAnswer::Failed {
        message: absent(name),
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
