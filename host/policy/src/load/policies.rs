//! The loaded policies: an immutable set that a short-lived command loads once. A long-running driver uses
//! `scupper-policy-reload`.

use std::collections::BTreeMap;
use std::sync::Arc;

use scupper_engine::{HookPhase, PlanAnswer, PolicyInfo, StepOutcome};
use scupper_policy_spec::{Grant, PolicyMode, PolicySpec, check_policy_name};

use super::error::{LoadError, LoadFault};
use super::loaded::{LoadedPolicy, no_hooks, no_planner};
use crate::{ClusterAccess, PlanCall, PolicyUsage, Runtime, StepCall, load};

/// The loaded policies, in chain order.
#[derive(Clone)]
pub struct Policies {
    loaded: Vec<Arc<LoadedPolicy>>,
}

/// A loaded policy, described for users.
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
    /// Changes when its hooks cannot read the state of an older version.
    pub state_version: u32,
    /// SHA-256 of its file, in hex.
    pub digest: String,
    /// The capabilities it asks for, all granted.
    pub grants: Vec<Grant>,
    /// The phases with hooks.
    pub phases: Vec<HookPhase>,
    /// The labels of the nodes on which it takes part; empty: all nodes.
    pub node_selector: BTreeMap<String, String>,
    /// Whether drains follow it.
    pub mode: PolicyMode,
    /// It has a planner.
    pub planner: bool,
    /// A JSON schema of its configuration; empty: it has no configuration.
    pub config_schema: String,
}

impl Policies {
    /// Loads all policies, or fails with the first one that cannot be loaded.
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
            let loaded = loaded.map_err(|fault| LoadError::of(spec, fault))?;
            policies.loaded.push(Arc::new(loaded));
        }
        Ok(policies)
    }

    /// The engine's view of them, in chain order. Shadows are not part of the chain.
    pub fn infos(&self) -> Vec<PolicyInfo> {
        let active = self.loaded.iter();
        let active = active.filter(|loaded| !loaded.description.mode.is_shadow());
        active.map(|loaded| loaded.info()).collect()
    }

    /// Their descriptions for users.
    pub fn descriptions(&self) -> Vec<Description> {
        self.loaded
            .iter()
            .map(|loaded| loaded.description.clone())
            .collect()
    }

    /// The resource usage of their calls, in chain order: after loading, that of the calls for the description.
    pub fn usage(&self) -> Vec<PolicyUsage> {
        self.loaded.iter().map(|loaded| loaded.guest.usage()).collect()
    }

    /// Calls a policy's planner. Whatever the policy does, this returns an answer within its wall-clock limit.
    pub async fn plan(&self, call: PlanCall<'_>) -> PlanAnswer {
        match self.find(call.policy) {
            Some(policy) => policy
                .plan(&call)
                .await
                .unwrap_or_else(|error| policy.failed_plan(&error, call.draft)),
            None => no_planner(call.policy),
        }
    }

    /// Takes one step of a policy's hook. Whatever the policy does, this returns an outcome within its wall-clock
    /// limit.
    pub async fn step(&self, call: StepCall<'_>) -> StepOutcome {
        match self.find(&call.step.policy) {
            Some(policy) => policy
                .step(&call)
                .await
                .unwrap_or_else(|error| policy.failed_step(&error)),
            None => no_hooks(&call.step.policy),
        }
    }

    /// The single policies, for one drain.
    pub fn into_loaded(self) -> Vec<Arc<LoadedPolicy>> {
        self.loaded
    }

    fn find(&self, name: &str) -> Option<&Arc<LoadedPolicy>> {
        self.loaded.iter().find(|loaded| loaded.description.name == name)
    }

    /// Checks that the name is valid and unique.
    fn check_name(&self, name: &str) -> Result<(), LoadFault> {
        if self.find(name).is_some() {
            return Err(LoadFault::Twice);
        }
        Ok(check_policy_name(name)?)
    }
}
