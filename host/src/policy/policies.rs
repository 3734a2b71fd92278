//! The loaded policies: an immutable set that is made once and swapped as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use scupper_engine::{Duration, HookPhase, PlanAnswer, PolicyInfo, StepOutcome};

use super::error::{LoadError, LoadFault};
use super::load::{self, Loaded};
use super::{ClusterAccess, Grant, PlanCall, PolicySpec, PolicyUsage, Runtime, StepCall};

/// When a step that trapped or overran is tried again: a policy may fail because of what it was shown, and that
/// changes. The drain's deadline ends it.
const RETRY: Duration = Duration::from_secs(10);

/// The host's own first draft bears this name in plans.
const RESERVED_NAME: &str = "kubectl";

/// The loaded policies, in chain order.
pub struct Policies {
    loaded: Vec<Loaded>,
}

/// A loaded policy, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The operator's name for it.
    pub name: String,
    /// Its own name.
    pub title: String,
    /// Its own version.
    pub version: String,
    /// What it does, in one sentence.
    pub summary: String,
    /// Changes when its hooks cannot read the state an older version left behind.
    pub state_version: u32,
    /// SHA-256 of its file, in hex.
    pub digest: String,
    /// What it wants and was granted.
    pub grants: Vec<Grant>,
    /// The phases its hooks are called in.
    pub phases: Vec<HookPhase>,
    /// The labels of the nodes on which it takes part; empty: all nodes.
    pub node_selector: BTreeMap<String, String>,
    /// It plans.
    pub planner: bool,
    /// A JSON schema of its configuration; empty: it takes none.
    pub config_schema: String,
}

impl Policies {
    /// Loads all of them, or says what is wrong with the first that cannot be loaded.
    ///
    /// It must not run under a paused clock: it waits for a process.
    pub async fn load(
        runtime: &Runtime,
        specs: &[PolicySpec],
        cluster: Arc<dyn ClusterAccess>,
    ) -> Result<Self, LoadError> {
        let mut policies = Self {
            loaded: Vec::with_capacity(specs.len()),
        };
        for spec in specs {
            let name = policies.check_name(&spec.name);
            let loaded = match name {
                Ok(()) => load::load(runtime, spec, Arc::clone(&cluster)).await,
                Err(fault) => Err(fault),
            };
            policies.loaded.push(loaded.map_err(|fault| LoadError {
                policy: spec.name.clone(),
                file: spec.file.clone(),
                fault: Box::new(fault),
            })?);
        }
        Ok(policies)
    }

    /// What the engine must know of them, in chain order.
    pub fn infos(&self) -> Vec<PolicyInfo> {
        let info = |policy: &Description| PolicyInfo {
            name: policy.name.clone(),
            planner: policy.planner,
            phases: policy.phases.clone(),
            node_selector: policy.node_selector.clone(),
        };
        self.loaded
            .iter()
            .map(|loaded| info(&loaded.description))
            .collect()
    }

    /// What people may want to know of them.
    pub fn descriptions(&self) -> Vec<Description> {
        self.loaded
            .iter()
            .map(|loaded| loaded.description.clone())
            .collect()
    }

    /// What their calls used so far, in chain order: right after loading, what it takes to ask who they are.
    pub fn usage(&self) -> Vec<PolicyUsage> {
        self.loaded.iter().map(|loaded| loaded.guest.usage()).collect()
    }

    /// Asks a policy's planner. Whatever the policy does, there is an answer within its wall time.
    pub async fn plan(&self, call: PlanCall<'_>) -> PlanAnswer {
        let Some(policy) = self.find(call.policy) else {
            return PlanAnswer::Failed {
                message: absent(call.policy),
            };
        };
        match policy.guest.make_plan(&call).await {
            Ok(Ok(plan)) => PlanAnswer::Plan(plan),
            Ok(Err(message)) => PlanAnswer::Refused { message },
            Err(error) => PlanAnswer::Failed {
                message: told(&error),
            },
        }
    }

    /// Takes one step of a policy's hook. Whatever the policy does, there is an outcome within its wall time.
    pub async fn step(&self, call: StepCall<'_>) -> StepOutcome {
        let Some(policy) = self.find(&call.step.policy) else {
            return StepOutcome::Failed {
                message: absent(&call.step.policy),
                retry_after: None,
            };
        };
        match policy.guest.step(&call).await {
            Ok(outcome) => outcome,
            Err(error) => StepOutcome::Failed {
                message: told(&error),
                retry_after: Some(RETRY),
            },
        }
    }

    fn find(&self, name: &str) -> Option<&Loaded> {
        self.loaded.iter().find(|loaded| loaded.description.name == name)
    }

    /// Names stand in plans, checkpoints and metrics.
    fn check_name(&self, name: &str) -> Result<(), LoadFault> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=63).contains(&name.len()) && name.bytes().all(letter) && name != RESERVED_NAME;
        if fits && self.find(name).is_none() {
            Ok(())
        } else {
            Err(LoadFault::Name)
        }
    }
}

/// The failure as one line, also for the log: whoever debugs the policy looks there.
fn told(error: &super::CallError) -> String {
    let message = error.to_string();
    tracing::warn!(target: "scupper::policy", policy = %error.policy, function = error.function, "{}", error.fault);
    message
}

fn absent(name: &str) -> String {
    format!("there is no policy `{name}`")
}
