//! Kubernetes Events of the node for changes in Slurm, each emitted once.
//!
//! An Event that cannot be emitted is logged and does not stop the drain.

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

/// Someone else had drained the node before this drain began. It stays drained.
pub(super) fn found_drained(node: &SlurmNode) {
    let note = format!(
        "{} was already drained in Slurm, {}; drain and uncordon keep it drained",
        node.name,
        reason_text(node, &node.reason)
    );
    emit_or_log("SlurmNodeFoundDrained", events::emit_for_node, &note);
}

/// After the uncordon Slurm still gives the node no jobs.
pub(super) fn stays_out(node: &SlurmNode, state: &str, reason: &str) {
    let note = format!(
        "{} stays {state} in Slurm, {}; Scupper did not do this; to resume it: \"scontrol update nodename={} state=resume\"",
        node.name,
        reason_text(node, reason),
        node.name
    );
    emit_or_log("SlurmNodeStaysOut", events::warn_for_node, &note);
}

fn reason_text(node: &SlurmNode, reason: &str) -> String {
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

/// A rung of the ladder was climbed: jobs are or may be affected.
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
