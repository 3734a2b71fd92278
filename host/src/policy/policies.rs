//! The loaded policies: an immutable set that is made once and swapped as a whole.

use std::path::PathBuf;
use std::sync::Arc;

use scupper_engine::{HookPhase, PlanAnswer, PolicyInfo, StepOutcome};
use thiserror::Error;

use super::{ClusterAccess, Grant, PlanCall, PolicySpec, Runtime, StepCall};

/// The loaded policies, in chain order.
pub struct Policies {
    loaded: Vec<Description>,
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
    /// What it was granted and wants.
    pub grants: Vec<Grant>,
    /// The phases its hooks are called in.
    pub phases: Vec<HookPhase>,
    /// It plans.
    pub planner: bool,
    /// A JSON schema of its configuration; empty: it takes none.
    pub config_schema: String,
}

/// Why a policy is not loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("policy `{name}`: read {}", file.display())]
    Read {
        /// The policy.
        name: String,
        /// Its file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

impl Policies {
    /// Loads all of them, or says what is wrong with the first that cannot be loaded.
    pub async fn load(
        runtime: &Runtime,
        specs: &[PolicySpec],
        cluster: Arc<dyn ClusterAccess>,
    ) -> Result<Self, LoadError> {
        drop((runtime.options.clone(), runtime.engine.clone(), cluster));
        let mut loaded = Vec::with_capacity(specs.len());
        for PolicySpec {
            name, file, grants, ..
        } in specs
        {
            let read = tokio::fs::read(file).await;
            read.map_err(|source| LoadError::Read {
                name: name.clone(),
                file: file.clone(),
                source,
            })?;
            loaded.push(Description {
                name: name.clone(),
                title: name.clone(),
                version: String::new(),
                summary: String::new(),
                state_version: 0,
                digest: String::new(),
                grants: grants.clone(),
                phases: Vec::new(),
                planner: false,
                config_schema: String::new(),
            });
        }
        Ok(Self { loaded })
    }

    /// What the engine must know of them, in chain order.
    pub fn infos(&self) -> Vec<PolicyInfo> {
        let info = |policy: &Description| PolicyInfo {
            name: policy.name.clone(),
            planner: policy.planner,
            phases: policy.phases.clone(),
        };
        self.loaded.iter().map(info).collect()
    }

    /// What people may want to know of them.
    pub fn descriptions(&self) -> Vec<Description> {
        self.loaded.clone()
    }

    /// Asks a policy's planner.
    pub async fn plan(&self, call: PlanCall<'_>) -> PlanAnswer {
        PlanAnswer::Failed {
            message: format!("there is no policy `{}`", call.policy),
        }
    }

    /// Takes one step of a policy's hook.
    pub async fn step(&self, call: StepCall<'_>) -> StepOutcome {
        let message = format!("there is no policy `{}`", call.step.policy);
        StepOutcome::Failed {
            message,
            retry_after: None,
        }
    }
}
