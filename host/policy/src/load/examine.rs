//! Examines a policy for its author: reports every error that prevents loading, not only the first, and describes the
//! policy even without an operator's configuration.

use std::sync::Arc;

use scupper_engine::{HookPhase, HookStep, Subject};
use scupper_policy_spec::PolicySpec;

use super::error::LoadFault;
use super::flaws;
use super::loaded::{blank_node, dry_run};
use crate::imports::granted::Wants;
use crate::load::compiled::{self, Compiled};
use crate::runtime::guest::Guest;
use crate::{ClusterAccess, Description, DrainInfo, Facts, Flaw, PolicyUsage, Runtime, StepCall, load};

/// The findings.
#[derive(Debug, Default)]
pub struct Examined {
    /// The bytes of its file.
    pub bytes: u64,
    /// Its description, with all grants that it asks for, granted or not.
    pub description: Option<Description>,
    /// Every error that prevents loading.
    pub faults: Vec<LoadFault>,
    /// The resource usage of the examination's calls.
    pub usage: Option<PolicyUsage>,
}

/// Takes a policy through all steps of loading, and continues after a failed step if the next step does not need it.
pub async fn examine(runtime: &Runtime, spec: &PolicySpec, cluster: Arc<dyn ClusterAccess>) -> Examined {
    let mut examined = Examined::default();
    if let Err(fault) = through(runtime, spec, cluster, &mut examined).await {
        examined.faults.push(fault);
    }
    examined
}

async fn through(
    runtime: &Runtime,
    spec: &PolicySpec,
    cluster: Arc<dyn ClusterAccess>,
    examined: &mut Examined,
) -> Result<(), LoadFault> {
    let wasm = compiled::read(&spec.file).await?;
    examined.bytes = wasm.length();
    let (given, faults) = load::sound(spec).await?;
    examined.faults.extend(faults);
    let Compiled { component, digest } = compiled::compile(runtime, spec, wasm).await?;
    load::check_needs(&component, &spec.limits)?;
    let mut guest = load::link(runtime, spec, cluster, &given, &component, &digest)?;
    let about = guest
        .describe()
        .await?
        .map_err(|error| load::types("exports", &error))?;
    let mut flaws = flaws::of_description(&about);
    let wants = Wants::of(&about).unwrap_or_else(|fault| {
        examined.faults.push(fault);
        Wants::default()
    });
    let missing = given.missing(&wants, spec);
    if !missing.is_empty() {
        examined.faults.push(LoadFault::NotGranted(missing));
    }
    guest.context = Arc::new(guest.context.granted(&wants));
    if let Err(fault) = load::check_config(&guest).await {
        examined.faults.push(fault);
    }
    let phases = guest.phases().await.map_err(LoadFault::from);
    let phases = phases.unwrap_or_else(|fault| {
        examined.faults.push(fault);
        Vec::new()
    });
    for phase in &phases {
        flaws.extend(try_phase(&guest, *phase).await);
    }
    if !flaws.is_empty() {
        examined.faults.push(LoadFault::Flawed(flaws));
    }
    // Without what it wants, its plan says nothing of it.
    if guest.exports.planner.is_some()
        && examined.faults.is_empty()
        && let Err(fault) = dry_run(&guest).await
    {
        examined.faults.push(fault);
    }
    examined.description = Some(load::description(
        about,
        spec,
        digest,
        wants.grants,
        phases,
        &guest,
    ));
    examined.usage = Some(guest.usage());
    Ok(())
}

/// Lets a hook take its first step on a node without pods. A failure there does not count as an error of the policy.
async fn try_phase(guest: &Guest, phase: HookPhase) -> Vec<Flaw> {
    let subject = match phase {
        HookPhase::BeforeWave => Subject::Wave("all".to_owned()),
        // There is no pod.
        HookPhase::BeforeEvict => return Vec::new(),
        _ => Subject::Node,
    };
    let step = HookStep {
        policy: guest.context.policy.clone(),
        phase,
        subject,
        state: Vec::new(),
        leaving: Vec::new(),
    };
    let now = guest.context.clock.now();
    let blank = Arc::new(Facts::blank());
    let call = StepCall {
        step: &step,
        drain: DrainInfo {
            id: "check",
            name: "check",
            trigger: "command",
            started: now,
            deadline: None,
            now,
            own_pod: None,
            found_drained: false,
            held: false,
            machine_is_off: false,
            facts: Some(&blank),
        },
        node: &blank_node(),
        pods: &[],
    };
    let flaws = guest.try_step(&call).await.unwrap_or_default();
    let named = |flaw: Flaw| Flaw {
        field: format!("{phase}: {}", flaw.field),
        ..flaw
    };
    flaws.into_iter().map(named).collect()
}
