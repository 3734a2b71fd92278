//! Drains nodes in Slurm and waits until they have no jobs.
//!
//! Each step reads the state first and acts on it. So a step can be repeated, and after a lost response the next step sees
//! the effect.

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

/// The delay before the check after a change.
const SOON: Duration = Duration::from_millis(250);

/// The goal of a hook.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The nodes get no more jobs.
    Draining,
    /// The nodes also have no jobs.
    Drained,
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
        // Reported from the node's reason, because the response to the request may have been lost.
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
fn log_foreign_drains(call: &Call, nodes: &[SlurmNode]) {
    // Our own cordon may not be visible yet.
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

/// Drains the nodes that are in service. `None`: there were none.
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
        // The operator has a reason; draining the node again would work against it.
        let words = "someone resumed a node in Slurm; drain it there again, or cancel this drain";
        let waits = Outcome::pending(words).state(hook_state.bytes());
        return Ok(Some(
            each(waits.again_after(settings.poll), "gets jobs again").into(),
        ));
    }
    if open.iter().any(|node| node.would_lose_jobs()) {
        let words = "a node is powering up; a drain now would kill the jobs that it starts for";
        let waits = Outcome::pending(words).state(hook_state.bytes());
        return Ok(Some(
            each(waits.again_after(settings.poll), "powering up for jobs").into(),
        ));
    }
    for node in &open {
        let text = reason::text(call, settings.reason.as_deref(), node);
        server.set_state(&node.name, "DRAIN", Some(&text))?;
        log::info!("requested the drain of {} in Slurm", node.name);
        if aim == Aim::Drained {
            // The hook before the cordon has already reported it; this is a repeated drain.
            node_events::draining(node, &text);
        }
    }
    let waits = Outcome::pending("requested the drain in Slurm").state(hook_state.bytes());
    Ok(Some(each(waits.again_after(SOON), "draining in Slurm").into()))
}

/// Whether slurmctld lost our drain because it died before saving it. A node that someone resumed keeps our reason until a
/// job starts there; without the reason, only a restart of slurmctld explains the lost drain.
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
            "slurmctld restarted and lost the drain of {}; draining it again",
            node.name
        );
    }
    true
}

/// Whether we must drain the node. A foreign drain stays as it is, with its reason.
///
/// A drain with the reason of an earlier drain of this Kubernetes node belongs to the cordon, if that is older than this
/// drain: it ends with the cordon, and a cancel of this drain does not undo it. Before a cordon of this drain's own it is a
/// leftover, which this drain replaces.
fn needs_drain(call: &Call, node: &SlurmNode) -> bool {
    if node.is_draining() {
        return call.phase == Phase::BeforeCordon
            && reason::is_of_this_node(call, node)
            && !reason::is_of_this_drain(call, node);
    }
    !node.is_failing()
}

/// Pending, with the jobs and nodes that the drain waits for.
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
