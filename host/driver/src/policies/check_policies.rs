//! Loads each policy by itself and without a cluster, so that one run of `scupper config check` reports the problems of
//! all policies.

use std::sync::Arc;

use crate::{DriverError, PoliciesOptions, policies};
use scupper_common::clock::Clock;
use scupper_policy::{Description, LoadError, Network, NoCluster, Policies};

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
        let loaded = loaded.map(|policies| policies.descriptions().into_iter().next());
        let Some(result) = loaded.transpose() else {
            continue;
        };
        trials.push(PolicyCheckResult {
            name: spec.name.clone(),
            result,
        });
    }
    Ok(trials)
}
