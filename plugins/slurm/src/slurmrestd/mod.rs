//! `way: slurmrestd`: for clusters without slurm-operator, and for what slurm-operator does not show, such as which jobs run
//! and when they end.

pub(crate) mod check;
mod climb;
mod drain;
mod hook_state;
mod hostlist;
pub(crate) mod job;
mod ladder;
mod messages;
pub(crate) mod naming;
pub(crate) mod node;
mod node_events;
mod numbers;
mod out_of_service;
mod reason;
mod refusal;
mod search;
mod server;
pub(crate) mod settings;
pub(crate) mod slurm_error;
mod states;
mod taking;
mod targets;
mod token;
mod undrain;
pub(crate) mod wire;

use scupper_sdk::{Call, Outcome, Phase, Pod, Subject, log};

use crate::WAVE;
use crate::settings::{HeldPods, Settings};
use drain::Aim;
use naming::Naming;
use undrain::Whose;

/// One step of a hook.
pub(crate) fn step(call: &Call, settings: &Settings, workers: &[&Pod]) -> Outcome {
    let aim = match (call.phase, &call.subject) {
        (Phase::OnCancel, _) if call.drain.held && !settings.on_failure.undoes(true) => return Outcome::Done,
        (Phase::OnCancel, _) => return undrain::step(call, settings, workers, Whose::This),
        // Under our own cordon Slurm need not give the node jobs before it is schedulable.
        (Phase::BeforeUncordon, _) if call.node.own_cordon => return Outcome::Done,
        (Phase::BeforeUncordon | Phase::AfterUncordon, _) => {
            return undrain::step(call, settings, workers, Whose::Any);
        }
        (Phase::BeforeCordon, _) => Aim::Draining,
        (Phase::BeforeDrain, _) if settings.hold == HeldPods::Node => Aim::Drained,
        (Phase::BeforeDrain, _) if settings.has_leaving_worker(call) => Aim::Draining,
        // No later hook would wait for the jobs.
        (Phase::BeforeDrain, _) => Aim::Drained,
        (Phase::BeforeWave, _) if settings.hold == HeldPods::Node => Aim::StillDrained,
        (Phase::BeforeWave, Subject::Wave(wave)) if wave == WAVE => Aim::Drained,
        (Phase::AfterDrain, _) => Aim::StillDrained,
        (Phase::BeforeEvict, Subject::Pod(uid)) if workers.iter().any(|pod| pod.uid == *uid) => Aim::Drained,
        _ => return Outcome::Done,
    };
    match names(call, settings, workers) {
        Ok(names) if names.is_empty() => Outcome::Done,
        Ok(_) if let Some(misfit) = ladder_misfit(call, settings) => Outcome::failed(misfit).into(),
        Ok(names) => drain::step(call, settings, &names, aim),
        Err(missing) if settings.slurmrestd.ignores_unknown => {
            log::info!("{} is not a Slurm node: {missing}", call.node.name);
            Outcome::Done
        }
        Err(missing) => Outcome::failed(format!(
            "no Slurm node for {}: {missing}; set `slurm-node`, or `not-in-slurm` to `ignore`",
            call.node.name
        ))
        .into(),
    }
}

/// Why the drain cannot begin with this ladder. Only before the drain has begun.
fn ladder_misfit(call: &Call, settings: &Settings) -> Option<String> {
    let begins = matches!(call.phase, Phase::BeforeCordon | Phase::BeforeDrain) && call.state.is_empty();
    let slurmrestd = &settings.slurmrestd;
    if !begins || slurmrestd.scales_ladder {
        return None;
    }
    ladder::misfit(&slurmrestd.ladder, &call.drain)
}

/// The names of the Slurm nodes. Before the eviction of a pod with a Slurm node of its own only that one counts.
fn names(call: &Call, settings: &Settings, workers: &[&Pod]) -> Result<Vec<String>, String> {
    let slurmrestd = &settings.slurmrestd;
    if let (Naming::Pods, Subject::Pod(uid)) = (&slurmrestd.naming, &call.subject) {
        let own = workers.iter().filter(|pod| pod.uid == *uid);
        return Ok(own.map(|pod| naming::of_pod(&call.node, pod)).collect());
    }
    slurmrestd.naming.names(&slurmrestd.table, &call.node, workers)
}
