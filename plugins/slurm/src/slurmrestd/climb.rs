//! Climbing the deadline ladder.
//!
//! A controller can hang for good when somebody cancels another user's job without the right to. So before each rung
//! the token shows that it has the right, by draining the node once more for the reason that it is drained for; and on
//! a node that somebody else drains no rung is climbed.

use std::time::Duration;

use scupper_sdk::{Call, count, log};

use super::hook_state::HookState;
use super::job::Job;
use super::ladder::{self, Action};
use super::node::SlurmNode;
use super::search::Found;
use super::server::Server;
use super::slurm_error::SlurmError;
use super::{node_events, reason};
use crate::settings::Settings;

/// Jobs that one step signals or cancels.
const AT_ONCE: usize = 8;
/// How soon the next of them follow.
const NEXT: Duration = Duration::from_millis(250);

/// What became of it.
#[derive(Debug, Default)]
pub(crate) struct Climb {
    /// For people.
    pub(crate) said: Option<String>,
    /// The next step is wanted this soon.
    pub(crate) next: Option<Duration>,
}

/// Climbs the rung that is due, if one is.
pub(crate) fn step(
    call: &Call,
    settings: &Settings,
    hook_state: &mut HookState,
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
    if !nodes.iter().all(|node| reason::is_of_this_node(call, node)) {
        let said = "the ladder is not climbed, as somebody else drains the node".to_owned();
        return Ok(Climb {
            said: Some(said),
            next: None,
        });
    }
    for node in nodes {
        server.set_state(&node.name, "DRAIN", Some(&node.reason))?;
    }
    // A job that may be anywhere is not ours to end.
    let here = |job: &&Job| nodes.iter().any(|node| job.is_on(&node.name));
    let found = &Found {
        jobs: found.jobs.iter().filter(here).cloned().collect(),
        ..*found
    };
    let done = match &rung.action {
        Action::Down => down(server, nodes)?,
        Action::Requeue => each(hook_state, found, false, |job| requeue(server, job))?,
        Action::Cancel => each(hook_state, found, true, |job| {
            server.cancel(job.id(), None).map(|()| true)
        })?,
        Action::Signal(name) => {
            let jobs = found
                .jobs
                .iter()
                .filter(|job| can_be_signalled(job))
                .cloned()
                .collect();
            let found = Found { jobs, ..*found };
            each(hook_state, &found, false, |job| {
                server.cancel(job.id(), Some(name)).map(|()| true)
            })?
        }
    };
    Ok(climbed(call, hook_state, nodes, &rung.action, &done))
}

/// What a rung came to.
enum Done {
    /// It is climbed, for so many jobs.
    All(usize),
    /// More jobs follow.
    Some,
    /// Slurm cannot do it.
    Cannot,
}

fn climbed(
    call: &Call,
    hook_state: &mut HookState,
    nodes: &[SlurmNode],
    action: &Action,
    done: &Done,
) -> Climb {
    let said = match (done, action) {
        (Done::Some, _) => {
            return Climb {
                said: None,
                next: Some(NEXT),
            };
        }
        (Done::Cannot, _) => "this Slurm has no way to requeue a job".to_owned(),
        (Done::All(_), Action::Down) => "the node was set down".to_owned(),
        (Done::All(0), Action::Signal(name)) => format!("no job to send SIG{name} to"),
        (Done::All(0), Action::Requeue) => "no job to put back into the queue".to_owned(),
        (Done::All(0), Action::Cancel) => "no job to cancel".to_owned(),
        (Done::All(jobs), Action::Signal(name)) => format!("SIG{name} sent to {}", count(*jobs, "job")),
        (Done::All(jobs), Action::Requeue) => format!("{} put back into the queue", count(*jobs, "job")),
        (Done::All(jobs), Action::Cancel) => format!("{} cancelled", count(*jobs, "job")),
    };
    match done {
        // Nobody has lost anything.
        Done::All(0) if *action != Action::Down => log::info!("near the deadline: {said}"),
        Done::Cannot => {
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
    Climb {
        said: Some(said),
        next: None,
    }
}

/// Does it to one job after the other, in the order of their numbers, so that a later step knows where to go on. The rung
/// waits until all jobs of the node are known; where there are more than can be known at once, only if it ends jobs.
fn each(
    hook_state: &mut HookState,
    found: &Found,
    ends_jobs: bool,
    act: impl Fn(&Job) -> Result<bool, SlurmError>,
) -> Result<Done, SlurmError> {
    let mut due: Vec<&Job> = found
        .jobs
        .iter()
        .filter(|job| job.id() > 0 && !job.is_completing())
        .collect();
    due.sort_by_key(|job| job.id());
    let all = due.len();
    due.retain(|job| job.id() > hook_state.job);
    for job in due.iter().take(AT_ONCE) {
        if !act(job)? {
            return Ok(Done::Cannot);
        }
        hook_state.job = job.id();
    }
    let more = found.unseen > 0 && (ends_jobs || !found.full);
    Ok(if more || due.len() > AT_ONCE {
        Done::Some
    } else {
        Done::All(all)
    })
}

/// One that has not begun to run cannot hear a signal.
fn can_be_signalled(job: &Job) -> bool {
    job.has("RUNNING") && !job.has("CONFIGURING")
}

/// One that may not be requeued stays.
fn requeue(server: &Server<'_>, job: &Job) -> Result<bool, SlurmError> {
    match job.requeue {
        Some(false) => Ok(true),
        _ => server.requeue(job.id()),
    }
}

/// It says so in the reason: what we set down we must lift again.
fn down(server: &Server<'_>, nodes: &[SlurmNode]) -> Result<Done, SlurmError> {
    for node in nodes {
        server.set_state(&node.name, "DOWN", Some(&reason::set_down(node)))?;
    }
    Ok(Done::All(0))
}
