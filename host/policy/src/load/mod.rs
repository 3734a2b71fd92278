//! From a file to a policy ready to call, step by step; the error of the first failed step says what to do.

pub(crate) mod compiled;
pub(crate) mod error;
#[cfg(test)]
mod error_texts;
pub(crate) mod examine;
pub(crate) mod failure_policy;
pub(crate) mod flaws;
pub(crate) mod loaded;
pub(crate) mod policies;
pub(crate) mod schema;
pub(crate) mod surroundings;
use std::sync::{Arc, Mutex};

use scupper_common::text::{into_line, one_line};
use scupper_policy_compile::check_system;
use scupper_policy_spec::{Grant, Limits, PolicySpec};
use tokio::task::spawn_blocking;
use wasmtime::component::Component;

use crate::imports::events::EventLimiter;
use crate::imports::granted::GrantedCapabilities;
use crate::imports::http::RequestDeps;
use crate::imports::log::LogLimiter;
use crate::imports::store_data::PolicyContext;
use crate::load::compiled::{Compiled, check_pin, compile, read};
use crate::load::error::{ConfigProblem, LoadFault};
use crate::load::flaws::{is_name, is_schema};
use crate::load::loaded::LoadedPolicy;
use crate::runtime::guest::{Exports, Guest};
use crate::wit::bindings::exports::scupper::drain::about;
use crate::{ClusterAccess, Description, Runtime};

/// Bytes of a policy's own version and summary.
const ABOUT_BYTES: usize = 256;
/// Bytes of a problem's message, and the most problems in one error.
const PROBLEM_BYTES: usize = 512;
const PROBLEMS: usize = 50;

const PAGE: u64 = 64 * 1024;

/// Takes a policy through all steps.
pub(crate) async fn load(
    runtime: &Runtime,
    spec: &PolicySpec,
    cluster: Arc<dyn ClusterAccess>,
) -> Result<LoadedPolicy, LoadFault> {
    given(spec).await.map(drop)?;
    let wasm = read(&spec.file).await?;
    let compiled = compile(runtime, spec, wasm).await?;
    finish_load(runtime, spec, cluster, compiled).await
}

/// The remaining steps: link, describe, check the configuration. A change of the configuration alone takes only these.
pub(crate) async fn finish_load(
    runtime: &Runtime,
    spec: &PolicySpec,
    cluster: Arc<dyn ClusterAccess>,
    compiled: Compiled,
) -> Result<LoadedPolicy, LoadFault> {
    let Compiled { component, digest } = compiled;
    let given = given(spec).await?;
    check_pin(&digest, spec.sha256.as_deref())?;
    check_needs(&component, &spec.limits)?;
    let mut guest = link(runtime, spec, cluster, &given, &component, &digest)?;
    let about = guest
        .describe()
        .await?
        .map_err(|error| types("exports", &error))?;
    let wants = given.wants(&about, spec)?;
    guest.context = Arc::new(guest.context.granted(&wants));
    check_config(&guest).await?;
    let phases = guest.phases().await?;
    let description = description(about, spec, digest, wants.grants, phases, &guest);
    Ok(LoadedPolicy {
        guest,
        description,
        on_failure: spec.on_failure,
    })
}

/// Its description for users.
pub(crate) fn description(
    about: about::Description,
    spec: &PolicySpec,
    digest: String,
    wants: Vec<Grant>,
    phases: Vec<scupper_engine::HookPhase>,
    guest: &Guest,
) -> Description {
    Description {
        name: spec.name.clone(),
        // An invalid name is not passed on.
        title: Some(about.name)
            .filter(|name| is_name(name))
            .unwrap_or_else(|| spec.name.clone()),
        version: into_line(about.version, ABOUT_BYTES),
        summary: into_line(about.summary, ABOUT_BYTES),
        state_version: about.state_version,
        digest,
        grants: wants,
        phases,
        node_selector: spec.node_selector.clone(),
        mode: spec.mode.clone(),
        planner: guest.exports.planner.is_some(),
        config_schema: Some(about.config_schema)
            .filter(|schema| is_schema(schema))
            .unwrap_or_default(),
    }
}

/// The operator's grants, checked.
pub(crate) async fn given(spec: &PolicySpec) -> Result<GrantedCapabilities, LoadFault> {
    let spec = spec.clone();
    blocking(move || GrantedCapabilities::of(&spec)).await
}

/// Refuses a component that cannot be instantiated, with a better message than wasmtime's.
pub(crate) fn check_needs(component: &Component, limits: &Limits) -> Result<(), LoadFault> {
    let Some(needs) = component.resources_required() else {
        return Ok(());
    };
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let memory = needs
        .max_initial_memory_size
        .unwrap_or_default()
        .saturating_mul(PAGE);
    let bounds = [
        (u64::from(needs.num_memories), count(limits.memories), "memories"),
        (memory, count(limits.memory), "bytes of memory"),
        (
            needs.max_initial_table_size.unwrap_or_default(),
            count(limits.table_elements),
            "table elements",
        ),
    ];
    match bounds.into_iter().find(|(needs, limit, _)| needs > limit) {
        Some((needs, limit, what)) => Err(LoadFault::Needs {
            needs: format!("{needs} {what}"),
            limit: limit.to_string(),
        }),
        None => Ok(()),
    }
}

/// The same for the policy's author: the valid grants, and every error of the others.
pub(crate) async fn sound(spec: &PolicySpec) -> Result<(GrantedCapabilities, Vec<LoadFault>), LoadFault> {
    let spec = spec.clone();
    blocking(move || Ok(GrantedCapabilities::sound(&spec))).await
}

pub(crate) fn link(
    runtime: &Runtime,
    spec: &PolicySpec,
    cluster: Arc<dyn ClusterAccess>,
    given: &GrantedCapabilities,
    component: &Component,
    digest: &str,
) -> Result<Guest, LoadFault> {
    // It may have been compiled with more grants.
    if !spec.wasi {
        let types = component.component_type();
        check_system(types.imports(&runtime.engine).map(|(name, _)| name))?;
    }
    let surroundings = RequestDeps {
        network: runtime.options.network.clone(),
        memory: runtime.options.secrets.clone(),
        cluster: Arc::clone(&cluster),
    };
    let linker = if spec.wasi {
        &runtime.wasi_linker
    } else {
        &runtime.linker
    };
    let pre = linker
        .instantiate_pre(component)
        .map_err(|error| types("imports", &error))?;
    let exports = Exports::of(&pre).map_err(|error| types("exports", &error))?;
    let context = PolicyContext {
        policy: spec.name.clone(),
        config: spec.config.clone(),
        grants: Vec::new(),
        requests: Arc::new(given.requests(spec, surroundings)),
        cluster,
        clock: runtime.options.clock,
        log: Arc::new(Mutex::new(LogLimiter::new(
            &spec.limits,
            runtime.options.clock.now(),
        ))),
        events: Arc::new(Mutex::new(EventLimiter::new(runtime.options.clock.now()))),
        digest: digest.to_owned(),
        account: Arc::default(),
        observer: Arc::clone(&runtime.observer),
    };
    Ok(Guest {
        engine: runtime.engine.clone(),
        ticker: Arc::clone(&runtime.ticker),
        context: Arc::new(context),
        limits: spec.limits.clone(),
        pre,
        exports,
        wasi: spec.wasi,
    })
}

pub(crate) async fn check_config(guest: &Guest) -> Result<(), LoadFault> {
    let problems = guest.check_config().await?;
    if problems.is_empty() {
        return Ok(());
    }
    let problem = |problem: about::Problem| ConfigProblem {
        key: into_line(problem.key, ABOUT_BYTES),
        message: into_line(problem.message, PROBLEM_BYTES),
    };
    Err(LoadFault::Config(
        problems.into_iter().take(PROBLEMS).map(problem).collect(),
    ))
}

pub(crate) fn types(what: &'static str, error: &wasmtime::Error) -> LoadFault {
    LoadFault::Types {
        what,
        detail: one_line(&format!("{error:#}"), 300),
    }
}

/// Runs blocking work on a thread for blocking work.
pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, LoadFault> + Send + 'static,
) -> Result<R, LoadFault> {
    spawn_blocking(work)
        .await
        .map_err(|_cancelled_or_panicked| LoadFault::BrokenOff)?
}
