//! Drains nodes that are in service, unless an operator has resumed them.

use std::time::Duration;

use scupper_sdk::{Call, Outcome, Pending, Phase, log};

use super::hook_state::HookState;
use super::naming::{Naming, of_pod};
use super::node::SlurmNode;
use super::node_events;
use super::reason::Owner;
use super::server::Server;
use super::slurm_error::SlurmError;
use crate::settings::Settings;

/// The delay before the check after a change.
pub(super) const SOON: Duration = Duration::from_millis(250);

/// Drains the nodes that are in service. `None`: there were none.
pub(super) fn take_out_of_service(
    call: &Call,
    settings: &Settings,
    hook_state: &mut HookState,
    server: &Server<'_>,
    nodes: &[SlurmNode],
    owner: &Owner,
) -> Result<Option<Outcome>, SlurmError> {
    let (resumed, mut open): (Vec<&SlurmNode>, Vec<&SlurmNode>) = nodes
        .iter()
        .filter(|node| needs_drain(call, node, owner))
        .partition(|node| was_resumed(call, settings, hook_state, node, owner));
    if open.is_empty() {
        if resumed.is_empty() {
            return Ok(None);
        }
        if !is_lost(hook_state, server, &resumed, owner) {
            return Ok(Some(wait_for_operator(call, settings, hook_state, &resumed)));
        }
        open = resumed;
    }
    if open.iter().any(|node| node.would_lose_jobs()) {
        let words = "a node is powering up; a drain now would kill the jobs that it starts for";
        let waits = Outcome::pending(words).again_after(settings.poll);
        return Ok(Some(each(waits, hook_state, &open, "powering up for jobs")));
    }
    for node in &open {
        let text = owner.text(settings.reason.as_deref(), node);
        server.set_state(&node.name, "DRAIN", Some(&text))?;
        log::info!("requested the drain of {} in Slurm", node.name);
        if call.phase != Phase::BeforeCordon {
            // The hook before the cordon has already reported it; this is a repeated drain.
            node_events::draining(node, &text);
        }
    }
    let waits = Outcome::pending("requested the drain in Slurm").again_after(SOON);
    Ok(Some(each(waits, hook_state, &open, "draining in Slurm")))
}

fn each(pending: Pending, hook_state: &HookState, nodes: &[&SlurmNode], detail: &str) -> Outcome {
    let pending = pending.state(hook_state.bytes());
    let waits = |pending: Pending, node: &&SlurmNode| pending.waiting_for(&node.name, detail, None);
    nodes.iter().fold(pending, waits).into()
}

/// Whether this open node was drained by this drain, or with its reason. In the later phases it was, unless it is new. Slurm
/// itself resumes a node after its reboot.
fn was_resumed(
    call: &Call,
    settings: &Settings,
    hook_state: &HookState,
    node: &SlurmNode,
    owner: &Owner,
) -> bool {
    let were_drained = hook_state.drained || call.phase.follows_before_drain();
    let was_drained = were_drained && !is_new(call, settings, hook_state, node);
    !hook_state.rebooted && (was_drained || owner.is_named_by(node))
}

/// Whether it is the Slurm node of a pod that was created after the nodes were first seen draining. A later hook only knows
/// when the drain began.
pub(super) fn is_new(call: &Call, settings: &Settings, hook_state: &HookState, node: &SlurmNode) -> bool {
    let before = match hook_state.drained {
        true => hook_state.since,
        false => call.drain.started,
    };
    settings.slurmrestd.naming == Naming::Pods
        && call.pods.iter().any(|pod| {
            settings.covers(pod) && pod.creation_timestamp > before && of_pod(&call.node, pod) == node.name
        })
}

/// The operator has a reason; draining the node again would work against it.
fn wait_for_operator(
    call: &Call,
    settings: &Settings,
    hook_state: &mut HookState,
    open: &[&SlurmNode],
) -> Outcome {
    if !std::mem::replace(&mut hook_state.reported, true) {
        for node in open {
            log::warn!("{} was resumed in Slurm, not by Scupper", node.name);
            node_events::resumed(call, node);
        }
    }
    let names: Vec<&str> = open.iter().map(|node| node.name.as_str()).collect();
    let words = format!(
        "an operator resumed {} in Slurm; drain it there again, or cancel this drain",
        names.join(", ")
    );
    let waits = Outcome::pending(words).again_after(settings.poll);
    each(
        waits,
        hook_state,
        open,
        "resumed in Slurm by an operator: it may get jobs",
    )
}

/// Whether slurmctld lost our drain because it died before saving it. A node that an operator resumed keeps our reason until a
/// job starts there, or, with accounting, no reason. Without the reason, a restart explains the lost drain, but only within the
/// seconds that slurmctld takes to save a change.
fn is_lost(hook_state: &mut HookState, server: &Server<'_>, open: &[&SlurmNode], owner: &Owner) -> bool {
    if open.iter().any(|node| owner.is_named_by(node)) {
        return false;
    }
    let before = hook_state.controller;
    if !before.is_some_and(|before| server.has_restarted(before)) {
        return false;
    }
    hook_state.drained = false;
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
fn needs_drain(call: &Call, node: &SlurmNode, owner: &Owner) -> bool {
    if node.is_draining() {
        return call.phase == Phase::BeforeCordon && owner.node_has_drained(node) && !owner.has_drained(node);
    }
    !node.is_failing()
}
