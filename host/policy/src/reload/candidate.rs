//! A candidate's way from its bytes to a policy that may become active: scan, compile, link, describe, check the
//! configuration, and a dry call.

use std::collections::BTreeMap;
use std::sync::Arc;

use scupper_engine::{Node, Plan, Time, Uid};

use scupper_policy_spec::{PolicySpec, check_policy_name};
use tokio::task::spawn_blocking;

use super::store::Store;
use super::telling::chain;
use crate::compiled::Compiled;
use crate::loaded::Loaded;
use crate::source::Source;
use crate::{
    CallError, CallFault, ClusterAccess, CompileError, CompileLimit, DrainInfo, LoadFault, PlanCall, Runtime,
    SourceError, compiled, load,
};

/// What a candidate is made of.
pub(super) enum Material {
    /// Its component.
    Wasm(Source),
    /// A policy of the same component with other settings: nothing is compiled.
    Same(Arc<Loaded>),
}

/// What candidates are loaded with.
#[derive(Clone)]
pub(super) struct Loader {
    pub(super) runtime: Arc<Runtime>,
    pub(super) cluster: Arc<dyn ClusterAccess>,
    /// Where good ones are kept for the next process; `None`: nowhere.
    pub(super) store: Option<Arc<Store>>,
}

impl Loader {
    /// Takes a candidate through all steps.
    pub(super) async fn load(&self, spec: &PolicySpec, material: Material) -> Result<Loaded, LoadFault> {
        check_policy_name(&spec.name)?;
        let compiled = match material {
            Material::Wasm(wasm) => {
                let compiled = compiled::compile(&self.runtime, spec, wasm.clone()).await?;
                let loaded = self.finish(spec, compiled).await?;
                self.keep(&loaded, wasm).await;
                return Ok(loaded);
            }
            Material::Same(loaded) => Compiled {
                component: loaded.guest.pre.component().clone(),
                digest: loaded.description.digest.clone(),
            },
        };
        self.finish(spec, compiled).await
    }

    async fn finish(&self, spec: &PolicySpec, compiled: Compiled) -> Result<Loaded, LoadFault> {
        let loaded = load::settle(&self.runtime, spec, Arc::clone(&self.cluster), compiled).await?;
        self.try_out(&loaded).await?;
        Ok(loaded)
    }

    /// Keeps a component that may become active. It is called even where it cannot be kept.
    async fn keep(&self, loaded: &Loaded, wasm: Source) {
        let Some(store) = self.store.clone() else { return };
        let kept = spawn_blocking(move || store.keep(&wasm)).await;
        if let Ok(Err(error)) = kept {
            let name = &loaded.description.name;
            let error = chain(&error);
            tracing::warn!(target: "scupper::policy", "policy {name} is not kept for a restart: {error}");
        }
    }

    /// A component that a former process, or this one, found good.
    pub(super) async fn kept(&self, digest: &str) -> Option<Source> {
        let (store, digest) = (self.store.clone()?, digest.to_owned());
        spawn_blocking(move || store.wasm(&digest)).await.ok()?
    }

    /// Has it plan for a node without pods. It may refuse, but it must answer.
    async fn try_out(&self, loaded: &Loaded) -> Result<(), LoadFault> {
        if !loaded.description.planner {
            return Ok(());
        }
        let node = nowhere();
        let nothing = Plan {
            decisions: Vec::new(),
            waves: Vec::new(),
        };
        let call = PlanCall {
            policy: &loaded.description.name,
            drain: DrainInfo {
                id: "",
                name: "",
                trigger: "",
                started: Time::default(),
                found_drained: false,
                held: false,
                deadline: None,
                now: self.runtime.options.clock.now(),
                own_pod: None,
            },
            node: &node,
            pods: &[],
            draft: &nothing,
        };
        let _plan_or_refusal = loaded.guest.dry_plan(&call).await?;
        Ok(())
    }
}

/// A node of which nothing is known.
pub(crate) fn nowhere() -> Node {
    Node {
        name: String::new(),
        uid: Uid(String::new()),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        unschedulable: false,
        conditions: Vec::new(),
        checkpoint: None,
        resource_version: String::new(),
    }
}

/// Whether the same candidate could be taken later: what failed was not the candidate.
pub(super) const fn may_pass(fault: &LoadFault) -> bool {
    matches!(
        fault,
        LoadFault::Cache(_)
            | LoadFault::BrokenOff
            // They may name files that are not there yet.
            | LoadFault::Http { .. }
            | LoadFault::Secret { .. }
            // On a machine that is busy enough.
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
                    | CompileError::Limit(CompileLimit::Wall(_))
            )
    )
}
