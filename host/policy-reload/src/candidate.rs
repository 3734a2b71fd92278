//! A candidate's way from its bytes to a policy that may become active: scan, compile, link, describe, check the
//! configuration, and a dry call.

use std::sync::Arc;

use scupper_policy::{
    CallError, CallFault, ClusterAccess, CompileError, CompileLimit, LoadFault, LoadedPolicy, Runtime,
    SourceError, WasmFile,
};
use scupper_policy_spec::{PolicySpec, check_policy_name};
use tokio::task::spawn_blocking;

use super::store::Store;
use scupper_common::error::chain;

/// The source of a candidate.
pub(super) enum Material {
    /// Its component.
    Wasm(WasmFile),
    /// A policy of the same component with other settings: nothing is compiled.
    Same(Arc<LoadedPolicy>),
}

/// The environment for loading candidates.
#[derive(Clone)]
pub(super) struct Loader {
    pub(super) runtime: Arc<Runtime>,
    pub(super) cluster: Arc<dyn ClusterAccess>,
    /// Stores good components for the next process; `None`: nothing is stored.
    pub(super) store: Option<Arc<Store>>,
}

impl Loader {
    /// Takes a candidate through all steps.
    pub(super) async fn load(
        &self,
        spec: &PolicySpec,
        material: Material,
    ) -> Result<LoadedPolicy, LoadFault> {
        check_policy_name(&spec.name)?;
        let cluster = Arc::clone(&self.cluster);
        match material {
            Material::Wasm(wasm) => {
                let loaded = LoadedPolicy::load(&self.runtime, spec, cluster, wasm.clone()).await?;
                loaded.dry_run().await?;
                self.keep(&loaded, wasm).await;
                Ok(loaded)
            }
            Material::Same(loaded) => {
                let loaded = loaded.with_settings(&self.runtime, spec, cluster).await?;
                loaded.dry_run().await?;
                Ok(loaded)
            }
        }
    }

    /// Stores a component that may become active. A failure to store it does not prevent its use.
    async fn keep(&self, loaded: &LoadedPolicy, wasm: WasmFile) {
        let Some(store) = self.store.clone() else { return };
        let kept = spawn_blocking(move || store.keep(&wasm)).await;
        if let Ok(Err(error)) = kept {
            let name = &loaded.description.name;
            let error = chain(&error);
            tracing::warn!(target: "scupper::policy", "policy {name} is not kept for a restart: {error}");
        }
    }

    /// A component that this or an earlier process found good.
    pub(super) async fn kept(&self, digest: &str) -> Option<WasmFile> {
        let (store, digest) = (self.store.clone()?, digest.to_owned());
        spawn_blocking(move || store.wasm(&digest)).await.ok()?
    }
}

/// Whether the same candidate could load later: the candidate is not to blame.
pub(super) const fn is_transient(fault: &LoadFault) -> bool {
    matches!(
        fault,
        LoadFault::Cache(_)
            | LoadFault::BrokenOff
            // They may name files that do not exist yet.
            | LoadFault::Http { .. }
            | LoadFault::Secret { .. }
            // Can happen on a busy machine.
            | LoadFault::Call(CallError {
                fault: CallFault::Wall(_) | CallFault::Waited(_) | CallFault::Panic,
                ..
            })
            | LoadFault::Native(_)
            | LoadFault::Source(SourceError::Read(_))
            | LoadFault::Compile(
                CompileError::Start { .. }
                    | CompileError::Talk(_)
                    | CompileError::Take(_)
                    // Other processes of the container use the rest of its memory at the moment.
                    | CompileError::Limit(CompileLimit::Wall(_) | CompileLimit::Container { .. })
                    // Until an operator deletes the mark, a retry only looks at it.
                    | CompileError::Killed { .. }
            )
    )
}

/// Whether each retry costs a compilation, so that retries must become rare.
pub(super) const fn is_costly(fault: &LoadFault) -> bool {
    matches!(fault, LoadFault::Compile(CompileError::Limit(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compilation_that_can_succeed_later_is_tried_again() {
        let container = CompileLimit::Container {
            left: 100 << 20,
            limit: 512 << 20,
        };
        let killed = CompileError::Killed {
            mark: "a.compiling".into(),
        };
        for error in [CompileError::Limit(container), killed] {
            let fault = LoadFault::Compile(error);
            assert!(is_transient(&fault), "final: {}", chain(&fault));
        }
        let native = LoadFault::Compile(CompileError::Limit(CompileLimit::Native(1)));
        assert!(!is_transient(&native), "it would become as much again");
    }
}
