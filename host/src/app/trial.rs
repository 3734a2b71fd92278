//! Policies loaded on trial: each by itself, without a cluster, so that everything that is wrong is told at once.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_engine::{Node, Pod, PodRef};

use super::{AppError, PoliciesOptions, policies};
use crate::clock::Clock;
use crate::policy::{AccessError, ClusterAccess, Description, LoadError, Network, Policies, PolicyEvent};

/// What became of one policy.
#[derive(Debug)]
pub struct Trial {
    /// The operator's name for it.
    pub name: String,
    /// What it is, or why it cannot be loaded.
    pub result: Result<Description, LoadError>,
}

/// Loads each of the policies and lets it go again.
pub async fn try_policies(options: &PoliciesOptions) -> Result<Vec<Trial>, AppError> {
    let (runtime, _cache) = policies::runtime(options, None, Clock::System, Network::default())?;
    let mut trials = Vec::new();
    for spec in &options.policies {
        let loaded = Policies::load(&runtime, std::slice::from_ref(spec), Arc::new(NoCluster)).await;
        let loaded = loaded.map(|policies| policies.descriptions().into_iter().next());
        let Some(result) = loaded.transpose() else {
            continue;
        };
        trials.push(Trial {
            name: spec.name.clone(),
            result,
        });
    }
    Ok(trials)
}

/// Nothing that is called while a policy is loaded may reach a cluster, so none is needed.
struct NoCluster;

fn nothing<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, AccessError>> {
    let error = AccessError::Unavailable("the policy is only looked at".to_owned());
    std::future::ready(Err(error)).boxed()
}

impl ClusterAccess for NoCluster {
    fn node<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Node, AccessError>> {
        nothing()
    }

    fn pods<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>> {
        nothing()
    }

    fn annotate_node<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        nothing()
    }

    fn annotate_pod<'a>(
        &'a self,
        _: &'a PodRef,
        _: &'a str,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        nothing()
    }

    fn secret<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AccessError>> {
        nothing()
    }

    fn emit<'a>(&'a self, _: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>> {
        nothing()
    }
}
