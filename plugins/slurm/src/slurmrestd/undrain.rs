//! Undrains the nodes that our drains have drained, and no others.

use std::time::Duration;

use scupper_sdk::{Call, Failure, Outcome, Phase, Pod, log};

use super::hook_state::HookState;
use super::node::SlurmNode;
use super::reason::{self, Owner};
use super::server::Server;
use super::slurm_error::SlurmError;
use super::taking::SOON;
use super::{names, node_events, out_of_service, token};
use crate::settings::Settings;

/// So long before its deadline an uncordon gives back also a node that is silent.
const BEFORE_DEADLINE: Duration = Duration::from_secs(30);

/// Which drains to undo.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// That of this drain, which was cancelled or failed.
    This,
    /// Any drain of this Kubernetes node: the uncordon has another name than the drain had.
    Any,
}

impl Whose {
    /// The delay before the next step. A cancel has 15 seconds in all.
    fn poll(self, settings: &Settings) -> Duration {
        match self {
            Self::This => settings.poll.min(Duration::from_secs(1)),
            Self::Any => settings.poll,
        }
    }
}

/// Undrains the nodes. They are found by their reasons, because after a drain there may be no pods to name them.
pub(crate) fn step(call: &Call, settings: &Settings, workers: &[&Pod], whose: Whose) -> Outcome {
    try_step(call, settings, workers, whose).unwrap_or_else(|error| {
        let outcome = if error.is_of_token() {
            token::outcome(&error, call, settings, HookState::read(&call.state))
        } else {
            error.outcome(whose.poll(settings), true)
        };
        name_nodes(outcome, &names(call, settings, workers).unwrap_or_default())
    })
}

/// A failure may be all that people read of a node that stays drained in Slurm.
fn name_nodes(outcome: Outcome, names: &[String]) -> Outcome {
    match outcome {
        Outcome::Failed(failure) if !names.is_empty() => {
            let names = names.join(", ");
            let message = format!("{names} may still be drained in Slurm: {}", failure.message);
            Outcome::Failed(Failure { message, ..failure })
        }
        outcome => outcome,
    }
}

fn try_step(call: &Call, settings: &Settings, workers: &[&Pod], whose: Whose) -> Result<Outcome, SlurmError> {
    let mut server = Server::new(&settings.slurmrestd, None);
    let nodes = server.nodes()?;
    let owner = Owner::of(call, settings)?;
    let mut hook_state = HookState::read(&call.state);
    let lifted = report_lifted(call, &mut hook_state, &nodes);
    let ours = nodes.iter().filter(|node| match whose {
        Whose::This => owner.has_drained(node),
        Whose::Any => {
            owner.node_has_drained(node) && out_of_service::is_mapped(call, settings, workers, node)
        }
    });
    let ours: Vec<&SlurmNode> = ours.collect();
    if whose == Whose::This && !settings.on_failure.undoes(call.drain.held) {
        return Ok(kept(&ours));
    }
    if !lifted.is_empty() && !ours.is_empty() {
        // Saved before anything else may fail, so that it is reported once.
        let waits = Outcome::pending(format!("Slurm undrained {}", lifted.join(", ")));
        return Ok(waits.again_after(SOON).state(hook_state.bytes()).into());
    }
    let silent = ours.iter().find(|node| is_awaited(node, call, settings));
    if let (Some(node), Whose::Any) = (silent, whose) {
        return Ok(wait_for(node, settings, &hook_state));
    }
    for node in ours {
        let changed = server.set_state(&node.name, state(node), Some(reason::after(node)));
        if let Err(SlurmError::Unsure(message)) = &changed {
            // The next step sees the result, and reports it.
            hook_state.undraining = vec![node.name.clone()];
            let waits = Outcome::pending(format!(
                "{message}; looking whether Slurm undrained {}",
                node.name
            ));
            let waits = waits.again_after(whose.poll(settings));
            return Ok(waits.state(hook_state.bytes()).into());
        }
        changed?;
        report(call, node);
    }
    // The hook before the uncordon may have done all this already; it is reported once.
    if call.phase == Phase::AfterUncordon {
        out_of_service::report(call, settings, workers, &nodes, &owner);
    }
    Ok(Outcome::Done)
}

/// The cordon is lifted and these nodes stay drained. If the hook fails, Scupper reports that until an uncordon has undrained them.
fn kept(ours: &[&SlurmNode]) -> Outcome {
    if ours.is_empty() {
        return Outcome::Done;
    }
    let names: Vec<&str> = ours.iter().map(|node| node.name.as_str()).collect();
    Outcome::failed(format!(
        "Slurm keeps {} drained, as configured (`on-failure: keep`)",
        names.join(", ")
    ))
    .into()
}

/// When Slurm sets a silent node down, it adds to the reason that it finds, and keeps the node down later unless that is empty.
/// An undrain afterwards leaves exactly the reason with which the node returns. A node that boots after the undrain stays down
/// all the same (`Node unexpectedly rebooted`), so its boot is awaited for a while.
fn is_awaited(node: &SlurmNode, call: &Call, settings: &Settings) -> bool {
    let drain = &call.drain;
    let waits_since = Duration::from_millis(drain.now.saturating_sub(drain.started));
    let left = drain.deadline.map(|end| end.saturating_sub(drain.now));
    let has_time = left.is_none_or(|left| Duration::from_millis(left) > BEFORE_DEADLINE)
        && waits_since < settings.slurmrestd.registration_timeout;
    let may_boot = || has_time && !reason::was_down(node);
    node.has("NOT_RESPONDING") && (!node.has("DOWN") || may_boot())
}

fn wait_for(silent: &SlurmNode, settings: &Settings, hook_state: &HookState) -> Outcome {
    let name = &silent.name;
    let until = if silent.has("DOWN") {
        let limit = settings.slurmrestd.registration_timeout;
        format!("at most {limit:?} (`registration-timeout`)")
    } else {
        "or until the node is DOWN".to_owned()
    };
    let words = format!("{name} does not respond to Slurm; the undrain waits for its slurmd, {until}");
    let waits = Outcome::pending(words).again_after(settings.poll);
    let waits = waits.waiting_for(name, "its slurmd to respond", None);
    waits.state(hook_state.bytes()).into()
}

/// Reports the nodes that Slurm has undrained although the answer was lost, and returns their names.
fn report_lifted(call: &Call, hook_state: &mut HookState, nodes: &[SlurmNode]) -> Vec<String> {
    let is_lifted = |name: &mut String| {
        let Some(node) = nodes
            .iter()
            .find(|node| node.name == *name && !node.is_draining())
        else {
            return false;
        };
        report(call, node);
        true
    };
    hook_state.undraining.extract_if(.., is_lifted).collect()
}

fn report(call: &Call, node: &SlurmNode) {
    log::info!("Slurm gives jobs to {} again", node.name);
    node_events::undrained(call, node);
}

/// `UNDRAIN` only lifts the drain. `RESUME` also revives a node that is down, so it is used only if we set the node down.
fn state(node: &SlurmNode) -> &'static str {
    if reason::records_down(node) && node.has("DOWN") && !node.has("NOT_RESPONDING") {
        "RESUME"
    } else {
        "UNDRAIN"
    }
}
