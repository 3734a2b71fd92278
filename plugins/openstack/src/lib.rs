//! Drains a node's compute host in OpenStack: disables its nova-compute, migrates its servers to other hosts, and enables it
//! again after the maintenance.
//!
//! Nova holds the state. Every step starts from what Nova reports; losing the hook's own state does no harm.

mod checked;
mod clock;
mod cloud;
mod drain;
mod keystone;
mod nova;
mod settings;
mod state;
mod step_error;
mod step_outcome;

use cloud::{Cloud, TOKEN};
use scupper_sdk::{
    Call, Description, Draft, Drain, Finding, Grant, Hooks, Node, Outcome, Phase, Planner, Policy, Problem,
    Surroundings, description,
};
use settings::Settings;
use state::HookState;
use step_outcome::CredentialState;

/// The wave in which nova-compute pods leave.
const WAVE: &str = "nova-compute";

struct OpenStack;

scupper_sdk::export!(OpenStack with planner, hooks, surroundings);

impl Policy for OpenStack {
    /// The wanted grants depend on the configured URLs; without a valid configuration there are none.
    fn describe() -> Description {
        let about = description!(
            "Empties the node's compute host in OpenStack first, and enables it again afterwards"
        )
        .state_version(1)
        .config_schema(include_str!("../config.schema.json"));
        let Ok(settings) = Settings::read() else {
            return about;
        };
        about
            .wants(Grant::http(
                "POST,DELETE",
                &format!("{}/auth/tokens", settings.auth_url),
            ))
            .wants(Grant::http("GET,POST,PUT,DELETE", settings.compute.url()))
            .wants(Grant::secret(settings.credential.secret()))
            .wants(Grant::secret(TOKEN))
            .wants(Grant::events_of_node())
    }

    fn check_config() -> Vec<Problem> {
        Settings::read().err().unwrap_or_default()
    }
}

impl Planner for OpenStack {
    /// nova-compute leaves last: without it nothing can be migrated or aborted.
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let settings = Settings::read().map_err(first_message)?;
        for pod in draft.leaving() {
            if settings.is_nova_compute(pod) {
                draft.move_to_wave(pod, WAVE);
            }
        }
        Ok(())
    }
}

impl Hooks for OpenStack {
    fn phases() -> Vec<Phase> {
        vec![
            Phase::BeforeCordon,
            Phase::BeforeDrain,
            Phase::BeforeWave,
            Phase::AfterDrain,
            Phase::OnCancel,
            Phase::AfterUncordon,
        ]
    }

    fn step(call: &Call) -> Outcome {
        let settings = match Settings::read() {
            Ok(settings) => settings,
            Err(problems) => return Outcome::failed(first_message(problems)).into(),
        };
        if call.phase == Phase::BeforeWave && !call.leaving().iter().any(|pod| settings.is_nova_compute(pod))
        {
            return Outcome::Done;
        }
        let mut hook_state = HookState::read(&call.state);
        let credential = CredentialState::of(call, &mut hook_state);
        let mut cloud = Cloud::new(&settings, hook_state.session.take(), call.drain.now);
        let outcome = match call.phase {
            Phase::BeforeCordon => {
                drain::preflight(call, &settings, &mut hook_state, &mut cloud).map(|()| Outcome::Done)
            }
            Phase::BeforeDrain | Phase::BeforeWave | Phase::AfterDrain => {
                drain::empty(call, &settings, &mut hook_state, &mut cloud)
            }
            Phase::OnCancel => drain::cancel(call, &settings, &mut hook_state, &mut cloud),
            Phase::AfterUncordon => drain::enable(call, &settings, &mut cloud),
            _ => Ok(Outcome::Done),
        };
        let mut outcome = outcome.unwrap_or_else(|step_error| {
            let credential = credential.seen_by(&cloud);
            credential.outcome(call, &settings, &mut hook_state, step_error)
        });
        match &mut outcome {
            Outcome::Done => cloud.logout(),
            Outcome::Pending(pending) => {
                hook_state.session = cloud.session.take();
                pending.state = hook_state.write();
            }
            Outcome::Failed(_) => {}
        }
        outcome
    }
}

impl Surroundings for OpenStack {
    fn check(node: Option<&Node>) -> Vec<Finding> {
        match Settings::read() {
            Ok(settings) => drain::surroundings(node, &settings, &mut Cloud::new(&settings, None, 0)),
            Err(problems) => problems
                .into_iter()
                .map(|problem| Finding::error("configuration", String::from(problem), ""))
                .collect(),
        }
    }
}

fn first_message(problems: Vec<Problem>) -> String {
    let first = problems.into_iter().next();
    first.map_or_else(String::new, String::from)
}

#[cfg(test)]
mod tests;
