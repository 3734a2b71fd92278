//! The way through slurm-operator: it drains the Slurm node of each `slurmd` pod whose Kubernetes node is cordoned, and
//! mirrors what Slurm says into the pod's conditions. This way gives it a reason to pass on and waits for the
//! conditions. It talks to Kubernetes only and needs no Slurm credential.

mod reason;
pub(crate) mod unmatched;
mod worker;

use scupper_sdk::{Call, Grant, Outcome, Phase, Pod, Subject, Timestamp};

use crate::WAVE;
use crate::settings::{Hold, Settings};
use worker::State;

/// What this way asks the operator for.
pub(crate) fn wants() -> Grant {
    Grant::node_annotations("nodeset.slinky.slurm.net/")
}

/// One step of a hook.
pub(crate) fn step(call: &Call, settings: &Settings, workers: &[&Pod]) -> Outcome {
    let written = match call.phase {
        // A node without Slurm pods is none of Slurm's business.
        Phase::BeforeCordon if !workers.is_empty() => reason::set(call, settings),
        // The first step only: what somebody does to the annotation while we wait is their decision.
        Phase::BeforeDrain if !workers.is_empty() && call.state.is_empty() => {
            reason::set_if_missing(call, settings)
        }
        // The reason is that of the drain before, which has the same name as this one where a command asked for both,
        // and the node stays cordoned as that one left it.
        Phase::OnCancel if call.drain.found_drained => Ok(()),
        Phase::OnCancel if !settings.on_failure.undoes(call.drain.held) => Ok(()),
        Phase::OnCancel => reason::remove_own(call),
        Phase::BeforeUncordon | Phase::AfterUncordon => reason::clear(call),
        _ => Ok(()),
    };
    if let Err(error) = written {
        return error.into();
    }
    match (call.phase, &call.subject) {
        (Phase::BeforeDrain, _) if settings.hold == Hold::Node => wait(call, settings, workers),
        (Phase::BeforeWave, Subject::Wave(wave)) if wave == WAVE => wait(call, settings, workers),
        // The last look, whatever waves a policy after this one made, and however long a budget held the pod up.
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
