//! Why a drain cannot begin on its Slurm nodes. Nothing has changed yet.

use scupper_sdk::{Call, Phase};

use super::hook_state::HookState;
use super::node::{Load, SlurmNode};
use super::reason::Owner;
use super::search::Found;
use super::server::Server;
use super::slurm_error::SlurmError;
use super::{messages, search};
use crate::settings::{HeldPods, Settings};

/// Whether the drain can begin on its nodes.
pub(super) enum Beginning {
    /// Why not.
    Refused(String),
    /// It can. With the jobs on the nodes if they were searched and stay the same: a step has requests for one search.
    Free(Option<Found>),
}

/// Whether the drain can begin on these nodes.
pub(super) fn refusal(
    call: &Call,
    settings: &Settings,
    hook_state: &mut HookState,
    server: &Server<'_>,
    nodes: &[SlurmNode],
    owner: &Owner,
) -> Result<Beginning, SlurmError> {
    if !is_first(call) {
        return Ok(Beginning::Free(None));
    }
    if let Some(node) = nodes.iter().find(|node| owner.is_of_another(node)) {
        return Ok(Beginning::Refused(format!(
            "{} is drained in Slurm for another Kubernetes node: {}; two nodes cannot share one Slurm node: correct \
             `slurm-node`, or uncordon the other node",
            node.name, node.reason
        )));
    }
    let is_unheld = settings.hold == HeldPods::SlurmPods && !settings.slurmrestd.holds_without_pods;
    if !is_unheld || settings.has_leaving_worker(call) {
        return Ok(Beginning::Free(None));
    }
    let is_open = nodes.iter().any(SlurmNode::may_get_jobs);
    let found = search::jobs(server, hook_state, nodes)?;
    let is_busy = nodes.iter().any(|node| matches!(node.load(), Load::Busy(_)));
    if is_busy || !found.jobs.is_empty() {
        return Ok(Beginning::Refused(format!(
            "{}, but with `hold: slurm-pods` jobs are awaited before Slurm pods leave, and no pod with the labels of \
             `label` leaves {}: correct `label` and `namespace`, or set `no-slurm-pods` to `hold`",
            messages::progress(nodes, &found),
            call.node.name
        )));
    }
    if is_open {
        // A job that begins before the drain may have any number.
        hook_state.forget_jobs();
        return Ok(Beginning::Free(None));
    }
    Ok(Beginning::Free(Some(found)))
}

/// Whether nothing has been changed in Slurm by this drain, as far as the step can know.
pub(super) fn is_first(call: &Call) -> bool {
    // Our own cordon may not be visible yet.
    let skipped = call.node.unschedulable && (!call.node.own_cordon || call.drain.found_drained);
    match call.phase {
        Phase::BeforeCordon => true,
        Phase::BeforeDrain => skipped && call.state.is_empty(),
        _ => false,
    }
}
