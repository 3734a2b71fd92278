//! Kubernetes Events of the node: what changed in Slurm, for whoever runs `kubectl describe`, each once.
//!
//! An Event is worth no drain: where one cannot be emitted, that is logged, and all goes on.

use scupper_sdk::{Call, events, log};

use super::ladder::Action;
use super::node::SlurmNode;

pub(super) fn draining(node: &SlurmNode, reason: &str) {
    let note = format!("Slurm gives no more jobs to {}: {reason}", node.name);
    emit_or_log("SlurmNodeDraining", events::emit_for_node, &note);
}

pub(super) fn undrained(call: &Call, node: &SlurmNode) {
    let note = format!("Slurm gives jobs to {} again: {}", node.name, call.drain.name);
    emit_or_log("SlurmNodeUndrained", events::emit_for_node, &note);
}

/// Somebody else had drained it before this drain began. The drain leaves it so.
pub(super) fn found_drained(node: &SlurmNode) {
    let note = format!(
        "{} is drained in Slurm already, {}; the drain leaves it so, and so does the uncordon",
        node.name,
        given(node, &node.reason)
    );
    emit_or_log("SlurmNodeFoundDrained", events::emit_for_node, &note);
}

/// The uncordon is over, and Slurm still gives the node no jobs.
pub(super) fn stays_out(node: &SlurmNode, state: &str, reason: &str) {
    let note = format!(
        "{} stays {state} in Slurm, {}; Scupper did not do this: \"scontrol update nodename={} state=resume\" gives it jobs again",
        node.name,
        given(node, reason),
        node.name
    );
    emit_or_log("SlurmNodeStaysOut", events::warn_for_node, &note);
}

fn given(node: &SlurmNode, reason: &str) -> String {
    let by = if node.set_by.is_empty() || reason != node.reason {
        String::new()
    } else {
        format!(" by {}", node.set_by)
    };
    if reason.trim().is_empty() {
        return format!("without a reason{by}");
    }
    format!("reason given{by}: {reason}")
}

/// A rung of the ladder was climbed: work was lost, or may be.
pub(super) fn climbed(call: &Call, nodes: &[SlurmNode], action: &Action, words: &str) {
    let reason = match action {
        Action::Signal(_) => "SlurmJobsSignalled",
        Action::Requeue => "SlurmJobsRequeued",
        Action::Cancel => "SlurmJobsCancelled",
        Action::Down => "SlurmNodeDown",
    };
    warn(call, nodes, reason, words);
}

/// A rung could not be climbed.
pub(super) fn missed(call: &Call, nodes: &[SlurmNode], words: &str) {
    warn(call, nodes, "SlurmRungMissed", words);
}

fn warn(call: &Call, nodes: &[SlurmNode], reason: &str, words: &str) {
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let note = format!(
        "near the deadline of {}: {words} ({})",
        call.drain.name,
        names.join(", ")
    );
    emit_or_log(reason, events::warn_for_node, &note);
}

fn emit_or_log(reason: &str, emit: fn(&str, &str) -> Result<(), events::Error>, note: &str) {
    if let Err(error) = emit(reason, &events::note(note)) {
        log::warn!("no Event {reason}: {error}");
    }
}
