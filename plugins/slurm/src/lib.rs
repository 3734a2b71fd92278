//! Drains a node through Slurm, on clusters where Slinky's slurm-operator runs `slurmd` in pods.
//!
//! The operator drains the Slurm node of each `slurmd` pod whose Kubernetes node is cordoned, and mirrors what Slurm
//! says into the pod's conditions. This policy gives the operator a reason to pass on, waits until the conditions
//! say that no job is left, and only then lets the pod go: a `slurmd` that ends takes its jobs with it.
//!
//! It talks to Kubernetes only. It needs no Slurm credential.

mod reason;
mod settings;
mod worker;

use scupper_sdk::{
    Call, Description, Draft, Drain, Grant, Hooks, Node, Outcome, Phase, Planner, Pod, Policy, Problem,
    Subject, Timestamp, description,
};
use settings::{Hold, Settings};
use worker::State;

/// The wave in which the Slurm pods leave.
const WAVE: &str = "slurm";

struct Slurm;

scupper_sdk::export!(Slurm with planner, hooks);

impl Policy for Slurm {
    fn describe() -> Description {
        description!("Drains the node in Slurm first, and lets Slurm pods go when their jobs have ended")
            .wants(Grant::node_annotations("nodeset.slinky.slurm.net/"))
            .state_version(1)
            .config_schema(include_str!("../config.schema.json"))
    }

    fn check_config() -> Vec<Problem> {
        Settings::read().err().unwrap_or_default()
    }
}

impl Planner for Slurm {
    /// Slurm pods leave last, all else is as the policies before have it: what jobs may lean on (a sidecar service,
    /// storage) does not leave before them.
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let settings = Settings::read().map_err(first_message)?;
        for pod in draft.leaving() {
            if settings.covers(pod) {
                draft.move_to_wave(pod, WAVE);
            }
        }
        Ok(())
    }
}

impl Hooks for Slurm {
    fn phases() -> Vec<Phase> {
        let mut phases = vec![
            Phase::BeforeCordon,
            Phase::BeforeDrain,
            Phase::BeforeWave,
            Phase::OnCancel,
            Phase::BeforeUncordon,
            Phase::AfterUncordon,
        ];
        // When the jobs are over before any pod leaves, a look at each pod would cost much and find nothing.
        if Settings::read().is_ok_and(|settings| settings.hold == Hold::SlurmPods) {
            phases.push(Phase::BeforeEvict);
        }
        phases
    }

    fn step(call: &Call) -> Outcome {
        let settings = match Settings::read() {
            Ok(settings) => settings,
            Err(problems) => return Outcome::failed(first_message(problems)).into(),
        };
        let workers: Vec<&Pod> = call.pods.iter().filter(|pod| settings.covers(pod)).collect();
        let written = match call.phase {
            // A node without Slurm pods is none of Slurm's business.
            Phase::BeforeCordon if !workers.is_empty() => reason::give(call, &settings),
            // The first step only: what somebody does to the annotation while we wait is their decision.
            Phase::BeforeDrain if !workers.is_empty() && call.state.is_empty() => {
                reason::give_late(call, &settings)
            }
            Phase::OnCancel => reason::take_back(call),
            Phase::BeforeUncordon | Phase::AfterUncordon => reason::clear(call),
            _ => Ok(()),
        };
        if let Err(error) = written {
            return error.into();
        }
        match (call.phase, &call.subject) {
            (Phase::BeforeDrain, _) if settings.hold == Hold::Node => wait(call, &settings, &workers),
            (Phase::BeforeWave, Subject::Wave(wave)) if wave == WAVE => wait(call, &settings, &workers),
            // The last look, whatever waves a policy after this one made, and however long a budget held the pod up.
            (Phase::BeforeEvict, Subject::Pod(uid)) => {
                let worker = workers.into_iter().find(|pod| pod.uid == *uid);
                wait(call, &settings, &Vec::from_iter(worker))
            }
            _ => Outcome::Done,
        }
    }
}

/// Done when all of these are drained in Slurm.
fn wait(call: &Call, settings: &Settings, workers: &[&Pod]) -> Outcome {
    let waiting: Vec<(&Pod, State)> = workers
        .iter()
        .map(|pod| (*pod, State::of(pod)))
        .filter(|(_, state)| *state != State::Drained)
        .collect();
    if waiting.is_empty() {
        return Outcome::Done;
    }
    let began = began(call);
    let drained = workers.len() - waiting.len();
    let progress = format!("{drained} of {} Slurm nodes drained", workers.len());
    let pending = Outcome::pending(progress)
        .again_after(settings.poll)
        .state(began.to_le_bytes());
    let waiting = waiting.into_iter().fold(pending, |pending, (pod, state)| {
        // A pod that was put back in the meantime has not been waited for any longer than it exists.
        let since = began.max(pod.creation_timestamp);
        pending.waiting_for(pod.full_name(), state.to_string(), Some(since))
    });
    waiting.into()
}

/// When this hook began to wait: kept in its state.
fn began(call: &Call) -> Timestamp {
    call.state
        .as_slice()
        .try_into()
        .map_or(call.drain.now, Timestamp::from_le_bytes)
}

fn first_message(problems: Vec<Problem>) -> String {
    let first = problems.into_iter().next();
    first.map_or_else(String::new, |problem| {
        format!("configuration `{}`: {}", problem.key, problem.message)
    })
}

#[cfg(test)]
mod tests;
