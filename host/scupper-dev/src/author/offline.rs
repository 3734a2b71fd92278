//! Loads policies without a cluster.

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use thiserror::Error;

use super::cluster_access::SharedCluster;
use super::memory_cluster::MemoryCluster;
use super::scenario::BEGINNING;
use super::shorthand::plain_node;
use scupper_common::clock::Clock;
use scupper_policy::{
    Compilation, Examined, LoadError, LoadFault, Network, Policies, Runtime, RuntimeError, RuntimeOptions,
    Secrets, own_program,
};
use scupper_policy_spec::PolicySpec;

/// Loads policies for their author.
pub(crate) struct OfflineRuntime {
    options: RuntimeOptions,
    runtime: Runtime,
    /// Their compiled code is deleted with the workbench.
    _cache: TempDir,
}

/// Why the runtime could not be prepared.
#[derive(Debug, Error)]
pub(crate) enum OfflineError {
    /// Compiled code cannot be stored.
    #[error("cannot create a directory for compiled policies, or find this program")]
    Place(#[source] std::io::Error),
    /// The runtime for policies could not be created.
    #[error("could not prepare the policy runtime")]
    Runtime(#[source] RuntimeError),
}

/// Why policies cannot be tried on a cluster in memory.
#[derive(Debug, Error)]
pub(crate) enum PolicyLoadError {
    /// The runtime for policies could not be created.
    #[error("could not prepare the policy runtime")]
    Runtime(#[from] RuntimeError),
    /// A policy cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl OfflineRuntime {
    /// Sets everything up. `compiler`: the program that compiles policies; `None`: this one.
    pub(crate) fn new(compiler: Option<PathBuf>) -> Result<Self, OfflineError> {
        let cache = tempfile::Builder::new()
            .prefix("scupper-author-")
            .tempdir()
            .map_err(OfflineError::Place)?;
        let options = RuntimeOptions {
            shipped: None,
            cache: cache.path().join("native"),
            compiler: compiler.unwrap_or_else(own_program),
            clock: Clock::System,
            network: Network::closed(),
            secrets: Secrets::default(),
        };
        let runtime = Runtime::new(options.clone()).map_err(OfflineError::Runtime)?;
        Ok(Self {
            options,
            runtime,
            _cache: cache,
        })
    }

    /// Loads policies with the cluster and the servers in memory.
    pub(super) async fn load(
        &self,
        specs: &[PolicySpec],
        cluster: &SharedCluster,
    ) -> Result<Policies, PolicyLoadError> {
        let network = Network {
            http_mock: Some(Arc::new(cluster.clone())),
            ..Network::closed()
        };
        // Compiled code is kept on disk, so another runtime costs next to nothing.
        // What one scenario has captured is not known to the next.
        let runtime = Runtime::new(RuntimeOptions {
            network,
            clock: cluster.lock().clock,
            secrets: Secrets::default(),
            ..self.options.clone()
        })?;
        Ok(Policies::load(&runtime, specs, Arc::new(cluster.clone())).await?)
    }

    /// Compiles a policy once more, and returns the time it took.
    pub(crate) async fn compile(&self, spec: &PolicySpec) -> Result<Compilation, LoadFault> {
        scupper_policy::time_compiling(&self.runtime, spec).await
    }

    /// Examines a policy.
    pub(crate) async fn examine(&self, spec: &PolicySpec) -> Examined {
        scupper_policy::examine(&self.runtime, spec, Arc::new(nothing())).await
    }
}

/// Examining a policy reaches no cluster.
fn nothing() -> SharedCluster {
    SharedCluster::new(MemoryCluster::new(BEGINNING, plain_node("node-1")))
}
