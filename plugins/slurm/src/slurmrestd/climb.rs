//! Climbs the deadline ladder.
//!
//! slurmctld can hang for good when a user without permission cancels another user's job. So before each rung the policy
//! proves its permission by repeating the drain with the same reason; on a node that someone else has drained it climbs no
//! rung.

use std::time::Duration;

use scupper_sdk::{Call, count, log};

use super::hook_state::HookState;
use super::job::Job;
use super::ladder::{self, Action};
use super::node::SlurmNode;
use super::node_events;
use super::reason::{self, Owner};
use super::search::Found;
use super::server::{Reached, Server};
use super::slurm_error::SlurmError;
use super::targets::Targets;
use crate::settings::Settings;

/// The most jobs that one step signals or cancels.
const AT_ONCE: usize = 8;
/// The delay before the next of them.
const NEXT: Duration = Duration::from_millis(250);

/// The result of climbing.
#[derive(Debug, Default)]
pub(crate) struct Climb {
    /// For people.
    pub(crate) said: Option<String>,
    /// The delay before the next step.
    pub(crate) next: Option<Duration>,
}

/// Climbs the next rung if it is due.
pub(crate) fn step(
    call: &Call,
    settings: &Settings,
    (hook_state, owner): (&mut HookState, &Owner),
    server: &Server<'_>,
    nodes: &[SlurmNode],
    found: &Found,
) -> Result<Climb, SlurmError> {
    let ladder = &settings.slurmrestd.ladder;
    let (Some(rung), Some(due)) = (
        ladder.get(hook_state.rungs),
        ladder::due(ladder, hook_state.rungs, &call.drain),
    ) else {
        return Ok(Climb::default());
    };
    let wait = due.saturating_sub(call.drain.now);
    if wait > 0 {
        return Ok(Climb {
            said: None,
            next: Some(Duration::from_millis(wait)),
        });
    }
    if !nodes.iter().all(|node| owner.node_has_drained(node)) {
        let said = "the ladder is not climbed because someone else has drained the node".to_owned();
        return Ok(Climb {
            said: Some(said),
            next: None,
        });
    }
    for node in nodes {
        server.set_state(&node.name, "DRAIN", Some(&node.reason))?;
    }
    let targets = Targets::of(settings, server, nodes, (found, hook_state.job))?;
    let done = match &rung.action {
        Action::Down => down(settings, hook_state, server, nodes, &targets)?,
        Action::Requeue => each(hook_state, &targets, false, |job, address| {
            requeue(server, job, address)
        })?,
        Action::Cancel => each(hook_state, &targets, true, |_, address| {
            server.cancel(address, None)
        })?,
        Action::Signal(name) => {
            let targets = targets.only(can_be_signalled);
            each(hook_state, &targets, false, |_, address| {
                server.cancel(address, Some(name))
            })?
        }
    };
    Ok(climbed(call, hook_state, nodes, &rung.action, &done, &targets))
}

/// The result of a rung.
enum Done {
    /// The rung is climbed, and has reached this many jobs.
    All(usize),
    /// More jobs follow.
    Some,
    /// Slurm does not support it.
    Cannot,
    /// It would end jobs that the configuration leaves alone.
    Left,
}

fn climbed(
    call: &Call,
    hook_state: &mut HookState,
    nodes: &[SlurmNode],
    action: &Action,
    done: &Done,
    targets: &Targets,
) -> Climb {
    let mut said = match (done, action) {
        (Done::Some, _) => {
            return Climb {
                said: None,
                next: Some(NEXT),
            };
        }
        (Done::Left, _) => "the node was not set down".to_owned(),
        (Done::Cannot, _) => "this Slurm cannot requeue a job".to_owned(),
        (Done::All(_), Action::Down) => "the node was set down".to_owned(),
        (Done::All(0), Action::Signal(name)) => format!("no job to send SIG{name} to"),
        (Done::All(0), Action::Requeue) => "no job to requeue".to_owned(),
        (Done::All(0), Action::Cancel) => "no job to cancel".to_owned(),
        (Done::All(jobs), Action::Signal(name)) => format!("SIG{name} sent to {}", count(*jobs, "job")),
        (Done::All(jobs), Action::Requeue) => format!("{} requeued", count(*jobs, "job")),
        (Done::All(jobs), Action::Cancel) => format!("{} cancelled", count(*jobs, "job")),
    };
    for words in targets.words(action) {
        said.push_str("; ");
        said.push_str(&words);
    }
    match done {
        // No job was affected.
        Done::All(0) if *action != Action::Down && targets.left.is_empty() => {
            log::info!("near the deadline: {said}");
        }
        Done::All(0) if *action != Action::Down => {
            log::warn!("near the deadline: {said}");
            node_events::missed(call, nodes, &said);
        }
        Done::Cannot | Done::Left => {
            log::warn!("near the deadline: {said}");
            node_events::missed(call, nodes, &said);
        }
        Done::All(_) | Done::Some => {
            log::warn!("near the deadline: {said}");
            node_events::climbed(call, nodes, action, &said);
        }
    }
    hook_state.rungs = hook_state.rungs.saturating_add(1);
    hook_state.job = 0;
    hook_state.reached = 0;
    Climb {
        said: Some(said),
        next: None,
    }
}

/// Handles the jobs in the order of their numbers, so that a later step can continue. The rung waits until all jobs of the
/// node are known; if they are more than the state can hold, it waits only if it ends jobs.
fn each(
    hook_state: &mut HookState,
    targets: &Targets,
    ends_jobs: bool,
    act: impl Fn(&Job, &str) -> Result<Reached, SlurmError>,
) -> Result<Done, SlurmError> {
    let due: Vec<_> = targets
        .jobs
        .iter()
        .filter(|(job, _)| job.id() > hook_state.job)
        .collect();
    for (job, address) in due.iter().take(AT_ONCE) {
        match act(job, address)? {
            Reached::Job => hook_state.reached = hook_state.reached.saturating_add(1),
            Reached::Nothing => {}
            Reached::Unsupported => return Ok(Done::Cannot),
        }
        hook_state.job = job.id();
    }
    let more = targets.unseen && (ends_jobs || !targets.full);
    Ok(if more || targets.later || due.len() > AT_ONCE {
        Done::Some
    } else {
        Done::All(usize::try_from(hook_state.reached).unwrap_or(usize::MAX))
    })
}

/// A job that has not begun to run cannot receive a signal.
fn can_be_signalled(job: &Job) -> bool {
    job.has("RUNNING") && !job.has("CONFIGURING")
}

/// A job that must not be requeued stays. Only all parts of a heterogeneous job can be requeued.
fn requeue(server: &Server<'_>, job: &Job, address: &str) -> Result<Reached, SlurmError> {
    match (job.requeue, job.heterogeneous()) {
        (Some(false), _) => Ok(Reached::Nothing),
        (_, Some(whole)) => server.requeue(&whole.to_string()),
        _ => server.requeue(address),
    }
}

/// Sets the nodes down, unless that ends a job that is left alone: a job that has not been looked at yet may be such a one.
/// Marks this in the reason, because a node that we set down must be resumed by us.
fn down(
    settings: &Settings,
    hook_state: &mut HookState,
    server: &Server<'_>,
    nodes: &[SlurmNode],
    targets: &Targets,
) -> Result<Done, SlurmError> {
    if !targets.left.is_empty() {
        return Ok(Done::Left);
    }
    if !settings.slurmrestd.ends_heterogeneous {
        let looked = each(hook_state, targets, true, |_, _| Ok(Reached::Nothing))?;
        if !matches!(looked, Done::All(_)) {
            return Ok(looked);
        }
    }
    for node in nodes {
        server.set_state(&node.name, "DOWN", Some(&reason::set_down(node)))?;
    }
    Ok(Done::All(0))
}
