//! Policies loaded on trial: each by itself, without a cluster, so that everything that is wrong is told at once.

use std::sync::Arc;

use crate::{DriverError, PoliciesOptions, policies};
use scupper_common::clock::Clock;
use scupper_policy::{Description, LoadError, Network, NoCluster, Policies};

/// Nothing that is called while a policy is loaded may reach a cluster, so none is needed.
const UNASKED: NoCluster = NoCluster("the policy is only looked at");

/// What became of one policy.
#[derive(Debug)]
pub struct PolicyCheck {
    /// The operator's name for it.
    pub name: String,
    /// What it is, or why it cannot be loaded.
    pub result: Result<Description, LoadError>,
}

/// Loads each of the policies and lets it go again.
pub async fn check_policies(options: &PoliciesOptions) -> Result<Vec<PolicyCheck>, DriverError> {
    let (runtime, _cache) = policies::runtime(options, None, Clock::System, Network::default())?;
    let mut trials = Vec::new();
    for spec in &options.policies {
        let loaded = Policies::load(&runtime, std::slice::from_ref(spec), Arc::new(UNASKED)).await;
        let loaded = loaded.map(|policies| policies.descriptions().into_iter().next());
        let Some(result) = loaded.transpose() else {
            continue;
        };
        trials.push(PolicyCheck {
            name: spec.name.clone(),
            result,
        });
    }
    Ok(trials)
}
