//! A policy ready to call, and the answers to the engine when a call fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use scupper_engine::{Node, Plan, PlanAnswer, PolicyInfo, StepOutcome, Time, Uid};
use scupper_policy_spec::{OnFailure, PolicySpec};

use super::error::LoadFault;
use super::{failure_policy, finish_load};
use crate::WasmFile;
use crate::load::compiled::{Compiled, compile};
use crate::runtime::guest::Guest;
use crate::{CallError, ClusterAccess, Description, DrainInfo, Facts, PlanCall, Runtime, StepCall};

/// A policy ready to call.
pub struct LoadedPolicy {
    pub(crate) guest: Guest,
    /// Its own description, and its grants.
    pub description: Description,
    pub(crate) on_failure: OnFailure,
}

impl LoadedPolicy {
    /// Scans, compiles, links and describes a component.
    pub async fn load(
        runtime: &Runtime,
        spec: &PolicySpec,
        cluster: Arc<dyn ClusterAccess>,
        wasm: WasmFile,
    ) -> Result<Self, LoadFault> {
        let compiled = compile(runtime, spec, wasm).await?;
        finish_load(runtime, spec, cluster, compiled).await
    }

    /// The same component with other settings: nothing is compiled.
    pub async fn with_settings(
        &self,
        runtime: &Runtime,
        spec: &PolicySpec,
        cluster: Arc<dyn ClusterAccess>,
    ) -> Result<Self, LoadFault> {
        let compiled = Compiled {
            component: self.guest.pre.component().clone(),
            digest: self.description.digest.clone(),
        };
        finish_load(runtime, spec, cluster, compiled).await
    }

    /// Lets its planner plan for a node without pods. It may refuse, but it must answer.
    pub async fn dry_run(&self) -> Result<(), LoadFault> {
        match self.description.planner {
            true => dry_run(&self.guest).await,
            false => Ok(()),
        }
    }

    /// The engine's view of it.
    pub fn info(&self) -> PolicyInfo {
        PolicyInfo {
            name: self.description.name.clone(),
            planner: self.description.planner,
            phases: self.description.phases.clone(),
            node_selector: self.description.node_selector.clone(),
        }
    }

    /// Calls its planner. A plan for which a fact could not be read does not count, nor does a failure after that.
    pub async fn plan(&self, call: &PlanCall<'_>) -> Result<PlanAnswer, CallError> {
        let own = Arc::default();
        let facts = call.drain.facts.unwrap_or(&own);
        let drain = DrainInfo {
            facts: Some(facts),
            ..call.drain
        };
        let answer = self.guest.make_plan(&PlanCall { drain, ..*call }).await;
        if let Some(trouble) = facts.trouble() {
            return Ok(failure_policy::unanswered(&self.description.name, &trouble));
        }
        Ok(match answer? {
            Ok(plan) => PlanAnswer::Plan(plan),
            Err(message) => PlanAnswer::Refused { message },
        })
    }

    /// Takes one step of its hook.
    pub async fn step(&self, call: &StepCall<'_>) -> Result<StepOutcome, CallError> {
        let outcome = self.guest.step(call).await?;
        let (name, phase) = (&self.description.name, call.step.phase);
        Ok(failure_policy::answered(
            self.on_failure.given_up,
            name,
            phase,
            outcome,
        ))
    }

    /// The answer to the engine when its planner fails.
    pub fn failed_plan(&self, error: &CallError, draft: &Plan) -> PlanAnswer {
        self.unsound(reported(error), draft)
    }

    /// The answer to the engine when its plan is invalid.
    pub fn unsound(&self, message: String, draft: &Plan) -> PlanAnswer {
        failure_policy::planner(self.on_failure.planner, &self.description.name, message, draft)
    }

    /// The answer to the engine when a step fails.
    pub fn failed_step(&self, error: &CallError) -> StepOutcome {
        failure_policy::hook(self.on_failure.hooks, &self.description.name, reported(error))
    }
}

/// A node without any data.
pub(crate) fn blank_node() -> Node {
    Node {
        name: String::new(),
        uid: Uid::new(""),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        unschedulable: false,
        conditions: Vec::new(),
        checkpoint: None,
        cancel: None,
        resource_version: String::new(),
    }
}

/// The answer to the engine when it calls a planner that does not exist.
pub fn no_planner(name: &str) -> PlanAnswer {
    PlanAnswer::Failed {
        message: absent(name),
        retry_after: None,
    }
}

/// The outcome for the engine when it calls a hook that does not exist.
pub fn no_hooks(name: &str) -> StepOutcome {
    StepOutcome::Failed {
        message: absent(name),
        retry_after: None,
    }
}

/// The failure as one line, which is also logged: authors debug with the log.
fn reported(error: &CallError) -> String {
    let message = error.to_string();
    tracing::warn!(target: "scupper::policy", policy = %error.policy, function = error.function, "{}", error.fault);
    message
}

fn absent(name: &str) -> String {
    format!("there is no policy `{name}`")
}

/// Lets a planner plan for a node without pods.
pub(super) async fn dry_run(guest: &Guest) -> Result<(), LoadFault> {
    let node = blank_node();
    let nothing = Plan::default();
    let blank = Arc::new(Facts::blank());
    let call = PlanCall {
        policy: &guest.context.policy,
        drain: DrainInfo {
            id: "",
            name: "",
            trigger: "",
            started: Time::default(),
            found_drained: false,
            held: false,
            machine_is_off: false,
            deadline: None,
            now: guest.context.clock.now(),
            own_pod: None,
            facts: Some(&blank),
        },
        node: &node,
        pods: &[],
        draft: &nothing,
    };
    let _plan_or_refusal = guest.dry_plan(&call).await?;
    Ok(())
}
