//! Draining in Slurm: taking the nodes out of service, and waiting until no job is left on them.
//!
//! Each step looks first and acts on what it sees, so it can be done twice, and a request whose answer was lost is
//! settled by the next look.

use std::time::Duration;

use scupper_sdk::{Call, Outcome, Pending, Phase, log};

use super::climb::{self, Climb};
use super::hook_state::HookState;
use super::node::{Load, SlurmNode};
use super::search::{self, Found};
use super::server::Server;
use super::slurm_error::SlurmError;
use super::{messages, node_events, reason, token};
use crate::settings::Settings;

/// How soon after a change it is looked at again.
const SOON: Duration = Duration::from_millis(250);

/// What a hook is to reach.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The nodes take no more jobs.
    Draining,
    /// And have none left.
    Drained,
}

/// One step towards it.
pub(crate) fn step(call: &Call, settings: &Settings, names: &[String], aim: Aim) -> Outcome {
    let mut hook_state = HookState::read(&call.state);
    let mut server = Server::new(&settings.slurmrestd, hook_state.version);
    // What has begun is seen through: a node that is missing for a moment, or a right that was lost, may come back.
    let before = hook_state.clone();
    hook_state.refused = None;
    let outcome = try_step(call, settings, names, aim, &mut hook_state, &mut server);
    outcome.unwrap_or_else(|error| match error {
        error if error.is_of_token() => {
            let version = hook_state.version;
            token::outcome(&error, call, settings, HookState { version, ..before })
        }
        error => error.outcome(settings.poll, before.drained),
    })
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
    if nodes.iter().any(|node| !node.is_draining() && !node.is_failing()) {
        hook_state.forget_jobs();
    }
    if let Some(outcome) = take_out_of_service(call, settings, aim, hook_state, server, &nodes)? {
        return Ok(outcome);
    }
    log_foreign_drains(call, &nodes);
    let was_drained = hook_state.drained;
    hook_state.drained = nodes.iter().all(SlurmNode::is_draining);
    if aim == Aim::Draining {
        // Told by what is seen: the answer to the request may have been lost.
        for node in nodes.iter().filter(|node| reason::is_of_this_drain(call, node)) {
            node_events::draining(node, &node.reason);
        }
        return Ok(Outcome::Done);
    }
    let found = search::jobs(server, hook_state, &nodes)?;
    let free = nodes.iter().all(|node| node.load() == Load::Free);
    if free && found.jobs.is_empty() && found.unseen == 0 {
        return Ok(Outcome::Done);
    }
    if hook_state.drained && !was_drained {
        hook_state.controller = server.counts_since();
    }
    let climbed = climb::step(call, settings, hook_state, server, &nodes, &found)?;
    Ok(wait(settings, hook_state, &nodes, &found, &climbed))
}

/// The Slurm nodes of these names. `None`: there are none, and that is right.
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
                log::info!("{name} is no node of Slurm; nothing to drain there")
            }
            None => {
                return Err(SlurmError::NoSuchNode(format!(
                    "{name} is not among its {}",
                    all.len()
                )));
            }
        }
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// Names the drains that are not ours, once: before the cordon, or in the first step after it where that hook was skipped.
fn log_foreign_drains(call: &Call, nodes: &[SlurmNode]) {
    // Our own cordon may not be seen yet.
    let skipped = call.node.unschedulable && (!call.node.own_cordon || call.drain.found_drained);
    let first = match call.phase {
        Phase::BeforeCordon => true,
        Phase::BeforeDrain => skipped && call.state.is_empty(),
        _ => false,
    };
    let is_foreign = |node: &&SlurmNode| node.is_draining() && !reason::names_this_node(call, node);
    for node in nodes.iter().filter(is_foreign).filter(|_| first) {
        node_events::found_drained(node);
    }
}

/// Takes the nodes out of service that are in service. `None`: none was, and there is nothing left to do.
fn take_out_of_service(
    call: &Call,
    settings: &Settings,
    aim: Aim,
    hook_state: &mut HookState,
    server: &Server<'_>,
    nodes: &[SlurmNode],
) -> Result<Option<Outcome>, SlurmError> {
    let open: Vec<&SlurmNode> = nodes.iter().filter(|node| needs_drain(call, node)).collect();
    if open.is_empty() {
        return Ok(None);
    }
    let each = |pending: Pending, detail: &str| {
        open.iter().fold(pending, |pending, node| {
            pending.waiting_for(&node.name, detail, None)
        })
    };
    if hook_state.drained && !is_lost(call, hook_state, server, &open) {
        // The operator knows something. To drain it again would be a fight.
        let words = "somebody resumed a node in Slurm; drain it there again, or cancel this drain";
        let waits = Outcome::pending(words).state(hook_state.bytes());
        return Ok(Some(
            each(waits.again_after(settings.poll), "takes jobs again").into(),
        ));
    }
    if open.iter().any(|node| node.would_lose_jobs()) {
        let words = "a node is just starting; a drain now would kill the jobs it starts for";
        let waits = Outcome::pending(words).state(hook_state.bytes());
        return Ok(Some(
            each(waits.again_after(settings.poll), "starts, with jobs").into(),
        ));
    }
    for node in &open {
        let text = reason::text(call, settings.reason.as_deref(), node);
        server.set_state(&node.name, "DRAIN", Some(&text))?;
        log::info!("Slurm was asked to drain {}", node.name);
        if aim == Aim::Drained {
            // The hook before the cordon has told it, and it has changed since.
            node_events::draining(node, &text);
        }
    }
    let waits = Outcome::pending("Slurm was asked to drain").state(hook_state.bytes());
    Ok(Some(each(waits.again_after(SOON), "to take no more jobs").into()))
}

/// The controller has lost our drain: it died before it had saved it, and came back with what it knew before. Who resumes
/// a node leaves our reason on it, until a job starts there; then only a controller that was started anew has lost a drain.
fn is_lost(call: &Call, hook_state: &mut HookState, server: &Server<'_>, open: &[&SlurmNode]) -> bool {
    if open.iter().any(|node| reason::names_this_drain(call, node)) {
        return false;
    }
    let since = server.counts_since();
    let lost = match hook_state.controller.zip(since) {
        Some((before, now)) => before != now,
        None => !open.iter().any(|node| reason::names_this_node(call, node)),
    };
    if !lost {
        return false;
    }
    hook_state.controller = since;
    for node in open {
        log::warn!(
            "Slurm's controller was started anew and has lost the drain of {}; draining it again",
            node.name
        );
    }
    true
}

/// It is to be drained by us. A drain that is not of this node stays as it is, and so does its reason.
///
/// One of an earlier drain of this node belongs to the cordon, if the cordon stood before this drain: whoever lifts that
/// lifts this, and a cancel of this drain knows by the earlier reason that it has nothing to undo. Before a cordon of
/// this drain's own it is a leftover, and this drain's from now on.
fn needs_drain(call: &Call, node: &SlurmNode) -> bool {
    if node.is_draining() {
        return call.phase == Phase::BeforeCordon
            && reason::is_of_this_node(call, node)
            && !reason::is_of_this_drain(call, node);
    }
    !node.is_failing()
}

/// Not yet: for which jobs and nodes it waits.
fn wait(
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
        pending = pending.waiting_for(messages::job_name(job), messages::job(job, nodes), job.started());
    }
    for node in nodes {
        let jobs = jobs.iter().any(|job| job.may_run_on(&node.name));
        if let Some(detail) = messages::node(node, jobs) {
            pending = pending.waiting_for(&node.name, detail, None);
        }
    }
    pending.into()
}
