//! Loads each policy by itself and without a cluster, so that one run of `scupper config check` reports the problems of
//! all policies.

use std::sync::Arc;

use crate::{DriverError, PoliciesOptions, policies};
use scupper_common::clock::Clock;
use scupper_policy::{Description, LoadError, Network, NoCluster, Policies};
use scupper_policy_spec::PolicySpec;

/// Nothing that loading calls may reach a cluster.
const UNASKED: NoCluster = NoCluster("the policy is only checked");

/// The result of one policy.
#[derive(Debug)]
pub struct PolicyCheckResult {
    /// The operator's name for it.
    pub name: String,
    /// Its description, or why it cannot be loaded.
    pub result: Result<Description, LoadError>,
}

/// Loads each of the policies and drops it again.
pub async fn check_policies(options: &PoliciesOptions) -> Result<Vec<PolicyCheckResult>, DriverError> {
    let (runtime, _cache) = policies::runtime(options, None, Clock::System, Network::default())?;
    let mut trials = Vec::new();
    for spec in &options.policies {
        let loaded = Policies::load(&runtime, std::slice::from_ref(spec), Arc::new(UNASKED)).await;
        for result in tried(spec, loaded).await {
            trials.push(PolicyCheckResult {
                name: spec.name.clone(),
                result,
            });
        }
    }
    Ok(trials)
}

/// As a driver does it: a planner that cannot plan for a node without pods is not loaded.
async fn tried(
    spec: &PolicySpec,
    loaded: Result<Policies, LoadError>,
) -> Vec<Result<Description, LoadError>> {
    let policies = match loaded {
        Ok(policies) => policies.into_loaded(),
        Err(error) => return vec![Err(error)],
    };
    let mut results = Vec::new();
    for policy in policies {
        let tried = policy.dry_run().await;
        let tried = tried.map(|()| policy.description.clone());
        results.push(tried.map_err(|fault| LoadError::of(spec, fault)));
    }
    results
}
