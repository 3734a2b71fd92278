//! Loads each policy by itself and without a cluster, so that all problems are reported at once.

use std::sync::Arc;

use crate::{DriverError, PoliciesOptions, policies};
use scupper_common::clock::Clock;
use scupper_policy::{Description, LoadError, Network, NoCluster, Policies};

/// Nothing that loading calls may reach a cluster.
const UNASKED: NoCluster = NoCluster("the policy is only looked at");

/// The result of one policy.
#[derive(Debug)]
pub struct TrialLoad {
    /// The operator's name for it.
    pub name: String,
    /// Its description, or why it cannot be loaded.
    pub result: Result<Description, LoadError>,
}

/// Loads each of the policies and drops it again.
pub async fn check_policies(options: &PoliciesOptions) -> Result<Vec<TrialLoad>, DriverError> {
    let (runtime, _cache) = policies::runtime(options, None, Clock::System, Network::default())?;
    let mut trials = Vec::new();
    for spec in &options.policies {
        let loaded = Policies::load(&runtime, std::slice::from_ref(spec), Arc::new(UNASKED)).await;
        let loaded = loaded.map(|policies| policies.descriptions().into_iter().next());
        let Some(result) = loaded.transpose() else {
            continue;
        };
        trials.push(TrialLoad {
            name: spec.name.clone(),
            result,
        });
    }
    Ok(trials)
}
