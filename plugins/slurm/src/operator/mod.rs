//! `way: operator`. slurm-operator drains the Slurm node of each `slurmd` pod whose Kubernetes node is cordoned, and copies
//! Slurm's states into the pod's conditions. The policy sets the reason for slurm-operator and waits for the conditions. It
//! uses only Kubernetes and needs no Slurm credential.

mod reason;
pub(crate) mod unmatched;
mod worker;

use scupper_sdk::{Call, Grant, Outcome, Phase, Pod, Subject, Timestamp};

use crate::WAVE;
use crate::settings::{HeldPods, Settings};
use crate::slurmrestd::naming::of_pod;
use worker::State;

/// The wanted grant.
pub(crate) fn wants() -> Grant {
    Grant::node_annotations("nodeset.slinky.slurm.net/")
}

/// One step of a hook.
pub(crate) fn step(call: &Call, settings: &Settings, workers: &[&Pod]) -> Outcome {
    let written = match call.phase {
        // A node without Slurm pods does not concern Slurm.
        Phase::BeforeCordon if !workers.is_empty() => reason::set(call, settings),
        // Only in the first step: later changes of the annotation are someone's decision.
        Phase::BeforeDrain if !workers.is_empty() && call.state.is_empty() => {
            reason::set_if_missing(call, settings)
        }
        // The reason belongs to the earlier drain, which may have the same name; the node stays cordoned.
        Phase::OnCancel if call.drain.found_drained => Ok(()),
        Phase::OnCancel if !settings.on_failure.undoes(call.drain.held) => match call.drain.held {
            true => Ok(()),
            false => return reason::keep_own(call),
        },
        Phase::OnCancel => reason::remove_own(call),
        Phase::BeforeUncordon | Phase::AfterUncordon => reason::clear(call),
        _ => Ok(()),
    };
    if let Err(error) = written {
        return error.into();
    }
    match (call.phase, &call.subject) {
        // Slurm is looked at again before each wave and before the end. Without a Slurm pod that leaves, no later hook would wait.
        (Phase::BeforeDrain | Phase::BeforeWave, _) if settings.hold == HeldPods::Node => {
            wait(call, settings, workers)
        }
        (Phase::BeforeDrain, _) if !settings.has_leaving_worker(call) => wait(call, settings, workers),
        (Phase::BeforeWave, Subject::Wave(wave)) if wave == WAVE => wait(call, settings, workers),
        (Phase::AfterDrain, _) => wait(call, settings, workers),
        // A last check, because a later policy may have made other waves, and a budget may have delayed the pod.
        (Phase::BeforeEvict, Subject::Pod(uid)) => {
            let worker = workers.iter().copied().find(|pod| pod.uid == *uid);
            wait(call, settings, &Vec::from_iter(worker))
        }
        _ => Outcome::Done,
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
    let jobs = jobs_text(call, &waiting);
    let progress = format!("{drained} of {} Slurm nodes drained{jobs}", workers.len());
    let pending = Outcome::pending(progress)
        .again_after(settings.poll)
        .state(began.to_le_bytes());
    let waiting = waiting.into_iter().fold(pending, |pending, (pod, state)| {
        // A pod that was recreated meanwhile has been awaited only since its creation.
        let since = began.max(pod.creation_timestamp);
        let detail = state.words(call.phase == Phase::BeforeDrain);
        pending.waiting_for(pod.full_name(), detail, Some(since))
    });
    waiting.into()
}

/// `; squeue --nodelist gpu-0,gpu-1 lists their jobs`: the Slurm nodes that have some.
fn jobs_text(call: &Call, waiting: &[(&Pod, State)]) -> String {
    let busy = waiting
        .iter()
        .filter(|(_, state)| matches!(state, State::Busy { .. }));
    let names: Vec<_> = busy.map(|(pod, _)| of_pod(&call.node, pod)).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; squeue --nodelist {} lists their jobs", names.join(","))
}

/// When this hook began to wait, from its state.
fn began(call: &Call) -> Timestamp {
    call.state
        .as_slice()
        .try_into()
        .map_or(call.drain.now, Timestamp::from_le_bytes)
}
