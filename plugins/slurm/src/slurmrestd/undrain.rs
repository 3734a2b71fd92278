//! Undrains the nodes that our drains have drained, and no others.

use scupper_sdk::{Call, Outcome, Phase, Pod, log};

use super::hook_state::HookState;
use super::node::SlurmNode;
use super::server::Server;
use super::slurm_error::SlurmError;
use super::{node_events, out_of_service, reason, token};
use crate::settings::Settings;

/// Which drains to undo.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// That of this drain, which was cancelled or failed.
    This,
    /// Any drain of this Kubernetes node: the uncordon has another name than the drain had.
    Any,
}

/// Undrains the nodes. They are found by their reasons, because after a drain there may be no pods to name them.
pub(crate) fn step(call: &Call, settings: &Settings, workers: &[&Pod], whose: Whose) -> Outcome {
    try_step(call, settings, workers, whose).unwrap_or_else(|error| match error {
        error if error.is_of_token() => token::outcome(&error, call, settings, HookState::read(&call.state)),
        error => error.outcome(settings.poll, true),
    })
}

fn try_step(call: &Call, settings: &Settings, workers: &[&Pod], whose: Whose) -> Result<Outcome, SlurmError> {
    let mut server = Server::new(&settings.slurmrestd, None);
    let nodes = server.nodes()?;
    let ours = nodes.iter().filter(|node| match whose {
        Whose::This => reason::is_of_this_drain(call, node),
        Whose::Any => reason::is_of_this_node(call, node),
    });
    for node in ours {
        server.set_state(&node.name, state(node), Some(&reason::after(call, node)))?;
        log::info!("Slurm gives jobs to {} again", node.name);
        node_events::undrained(call, node);
    }
    // The hook before the uncordon may have done all this already; it is reported once.
    if call.phase == Phase::AfterUncordon {
        out_of_service::report(call, settings, workers, &nodes);
    }
    Ok(Outcome::Done)
}

/// `UNDRAIN` only lifts the drain. `RESUME` also revives a node that is down, so it is used only if we set the node down.
fn state(node: &SlurmNode) -> &'static str {
    if reason::records_down(node) && node.has("DOWN") && !node.has("NOT_RESPONDING") {
        "RESUME"
    } else {
        "UNDRAIN"
    }
}
