//! Drains nodes in Slurm and waits until they have no jobs.
//!
//! Each step reads the state first and acts on it. So a step can be repeated, and after a lost response the next step sees
//! the effect.

use scupper_sdk::{Call, Outcome, Phase, log};

use super::climb::{self, Climb};
use super::hook_state::HookState;
use super::node::{Load, SlurmNode};
use super::reason::Owner;
use super::refusal::{Beginning, is_first, refusal};
use super::search::{self, Found};
use super::server::Server;
use super::slurm_error::SlurmError;
use super::taking::{SOON, is_new, take_out_of_service};
use super::{messages, node_events, token};
use crate::settings::Settings;

/// By then slurmctld has saved a change of a node, which takes it 5 s; in milliseconds.
const SAVED: u64 = 30_000;

/// The goal of a hook.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The nodes get no more jobs.
    Draining,
    /// The nodes also have no jobs.
    Drained,
    /// The nodes, which were seen without jobs, have got none since. Their `slurmd` may have ended meanwhile.
    StillDrained,
}

/// One step towards the goal.
pub(crate) fn step(call: &Call, settings: &Settings, names: &[String], aim: Aim) -> Outcome {
    let mut hook_state = HookState::read(&call.state);
    let mut server = Server::new(&settings.slurmrestd, hook_state.version);
    // A drain that has begun continues: a missing node or a lost permission may come back.
    let before = hook_state.clone();
    hook_state.refused = None;
    let outcome = try_step(call, settings, names, aim, &mut hook_state, &mut server);
    outcome.unwrap_or_else(|error| match error {
        error if error.is_of_token() => {
            let version = hook_state.version;
            token::outcome(&error, call, settings, HookState { version, ..before })
        }
        error if error.is_of_another_server() => error.outcome(settings.poll, has_worked(call, &hook_state)),
        error => error.outcome(settings.poll, before.drained || call.phase.follows_before_drain()),
    })
}

/// Whether slurmrestd has answered properly in this drain.
fn has_worked(call: &Call, hook_state: &HookState) -> bool {
    hook_state.version.is_some()
        || call.phase.follows_before_drain()
        || call.phase == Phase::BeforeDrain && call.node.own_cordon
}

fn try_step(
    call: &Call,
    settings: &Settings,
    names: &[String],
    aim: Aim,
    hook_state: &mut HookState,
    server: &mut Server<'_>,
) -> Result<Outcome, SlurmError> {
    let Some(nodes) = find(server, settings, names)? else {
        return Ok(Outcome::Done);
    };
    hook_state.version = server.version;
    let owner = Owner::of(call, settings)?;
    let has_new = hook_state.drained && nodes.iter().any(|node| is_new(call, settings, hook_state, node));
    if has_new || nodes.iter().any(SlurmNode::may_get_jobs) {
        hook_state.forget_jobs();
    }
    let known = match refusal(call, settings, hook_state, server, &nodes, &owner)? {
        Beginning::Refused(why) => return Ok(Outcome::failed(why).into()),
        Beginning::Free(known) => known,
    };
    note_reboots(call, hook_state, &nodes);
    if let Some(outcome) = take_out_of_service(call, settings, hook_state, server, &nodes, &owner)? {
        return Ok(outcome);
    }
    // From now on another resume is news.
    hook_state.reported = false;
    log_foreign_drains(call, &nodes, &owner);
    let has_rebooted = end_reboot(hook_state, &nodes, &owner);
    let was_drained = hook_state.drained && !has_new && !has_rebooted;
    hook_state.drained = nodes.iter().all(SlurmNode::is_draining);
    let reboots = call.phase != Phase::BeforeCordon && nodes.iter().any(SlurmNode::is_rebooting);
    if aim == Aim::Draining && !reboots {
        // Reported from the node's reason, because the response to the request may have been lost.
        for node in nodes.iter().filter(|node| owner.has_drained(node)) {
            node_events::draining(node, &node.reason);
        }
        return Ok(Outcome::Done);
    }
    let found = known.map_or_else(|| search::jobs(server, hook_state, &nodes), Ok)?;
    let free = nodes.iter().all(|node| is_free(call, aim, node));
    if free && found.jobs.is_empty() && found.unseen == 0 {
        return Ok(Outcome::Done);
    }
    note_drained(call, hook_state, server, was_drained);
    let climbed = climb::step(call, settings, (hook_state, &owner), server, &nodes, &found)?;
    Ok(wait(call, settings, hook_state, &nodes, &found, &climbed))
}

/// Whether a node without listed jobs has none.
fn is_free(call: &Call, aim: Aim, node: &SlurmNode) -> bool {
    match node.load() {
        _ if node.is_rebooting() => false,
        Load::Free => true,
        // It was free when it was last seen, and Slurm has given it no job since.
        Load::NotResponding if aim == Aim::StillDrained => true,
        // Slurm has ended its jobs, and nothing runs on a machine that is off.
        Load::NotResponding => node.is_lost() && call.machine_is_off(),
        Load::Busy(_) | Load::Unknown => false,
    }
}

/// A node that reboots on request gets its jobs back from Slurm afterwards, whoever drained it.
fn note_reboots(call: &Call, hook_state: &mut HookState, nodes: &[SlurmNode]) {
    for node in nodes.iter().filter(|node| node.is_rebooting()) {
        if !hook_state.rebooted {
            log::info!("{} reboots by `scontrol reboot`: {}", node.name, node.reason);
            node_events::reboots(node);
        }
        hook_state.drained = false;
    }
    hook_state.rebooted |= call.phase != Phase::BeforeCordon && nodes.iter().any(SlurmNode::is_rebooting);
}

/// Slurm resumes a node once after its reboot. Once our drain follows, only an operator resumes it again. Returns whether that
/// begins now.
fn end_reboot(hook_state: &mut HookState, nodes: &[SlurmNode], owner: &Owner) -> bool {
    let is_over = |node: &SlurmNode| owner.node_has_drained(node) && !node.is_rebooting();
    nodes.iter().all(is_over) && std::mem::take(&mut hook_state.rebooted)
}

/// Notes when the nodes were first seen draining, and slurmctld's start until it has certainly saved that.
fn note_drained(call: &Call, hook_state: &mut HookState, server: &Server<'_>, was_drained: bool) {
    if hook_state.drained && !was_drained {
        hook_state.controller = server.started();
        hook_state.since = call.drain.now;
    } else if call.drain.now.saturating_sub(hook_state.since) >= SAVED {
        hook_state.controller = None;
    }
}

/// The Slurm nodes with these names. `None`: Slurm has none, and the configuration allows it.
fn find(
    server: &mut Server<'_>,
    settings: &Settings,
    names: &[String],
) -> Result<Option<Vec<SlurmNode>>, SlurmError> {
    let all = server.nodes()?;
    let mut found = Vec::new();
    for name in names {
        match all.iter().find(|node| node.name == *name) {
            Some(node) => found.push(node.clone()),
            None if settings.slurmrestd.ignores_unknown => {
                log::info!("{name} is not a Slurm node; nothing to drain there")
            }
            None => {
                return Err(SlurmError::NoSuchNode(format!(
                    "{name} is not among its {} nodes",
                    all.len()
                )));
            }
        }
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// Reports foreign drains once: before the cordon, or in the first step after it if that hook was skipped.
fn log_foreign_drains(call: &Call, nodes: &[SlurmNode], owner: &Owner) {
    let is_foreign = |node: &&SlurmNode| node.is_draining() && !owner.node_is_named_by(node);
    let is_news = |node: &&SlurmNode| is_first(call) && !node.is_rebooting();
    for node in nodes.iter().filter(is_foreign).filter(is_news) {
        node_events::found_drained(node);
    }
}

/// Pending, with the jobs and nodes that the drain waits for.
fn wait(
    call: &Call,
    settings: &Settings,
    hook_state: &HookState,
    nodes: &[SlurmNode],
    found: &Found,
    climbed: &Climb,
) -> Outcome {
    let jobs = &found.jobs;
    let searches = found.unseen > 0 && !found.full;
    let poll = if searches { SOON } else { settings.poll };
    let mut progress = messages::progress(nodes, found);
    if let Some(said) = &climbed.said {
        progress = format!("{said}; {progress}");
    }
    let mut pending = Outcome::pending(progress)
        .again_after(climbed.next.unwrap_or(poll).min(poll))
        .state(hook_state.bytes());
    for job in jobs {
        // The drain has not waited for it since the job began.
        let since = job.started().map(|began| began.max(call.drain.started));
        pending = pending.waiting_for(messages::job_name(job), messages::job(job, nodes), since);
    }
    for node in nodes {
        let jobs = jobs.iter().any(|job| job.may_run_on(&node.name));
        if let Some(detail) = messages::node(node, jobs) {
            pending = pending.waiting_for(&node.name, detail, None);
        }
    }
    pending.into()
}
