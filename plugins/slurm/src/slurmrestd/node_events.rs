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

/// An operator, or a tool, has resumed the node while the drain runs.
pub(super) fn resumed(call: &Call, node: &SlurmNode) {
    let note = format!(
        "{} was resumed in Slurm, not by Scupper, while {} drains it: it may get jobs, so the drain waits; drain it there \
         again, or cancel this drain",
        node.name, call.drain.name
    );
    emit_or_log("SlurmNodeResumed", events::warn_for_node, &note);
}

/// The node reboots on request of a user of Slurm.
pub(super) fn reboots(node: &SlurmNode) {
    let note = format!(
        "{} reboots by `scontrol reboot`, {}; the drain waits for that, as Slurm may resume it afterwards",
        node.name,
        reason_text(node, &node.reason)
    );
    emit_or_log("SlurmNodeReboots", events::emit_for_node, &note);
}

/// After the uncordon `slurmd` does not respond yet: Slurm returns the node by itself.
pub(super) fn silent(node: &SlurmNode) {
    let note = format!(
        "{} is DOWN in Slurm until its slurmd responds; then it returns by itself, unless its machine boots only now \
         (\"Node unexpectedly rebooted\") or ReturnToService is 0",
        node.name
    );
    emit_or_log("SlurmNodeSilent", events::emit_for_node, &note);
}

/// A drain of this Kubernetes node has drained it, but the configuration no longer maps it to this node.
pub(super) fn not_mapped(call: &Call, node: &SlurmNode) {
    let note = format!(
        "{} stays drained in Slurm: a drain of {} drained it, but `slurm-node` no longer names it; to resume it: \
         \"scontrol update nodename={} state=resume\"",
        node.name, call.node.name, node.name
    );
    emit_or_log("SlurmNodeStaysOut", events::warn_for_node, &note);
}

/// Scupper drained it for another Kubernetes node.
pub(super) fn of_another(node: &SlurmNode) {
    let note = format!(
        "{} stays drained in Slurm for another Kubernetes node: {}; the uncordon of that node lifts it",
        node.name, node.reason
    );
    emit_or_log("SlurmNodeStaysOut", events::warn_for_node, &note);
}

/// An operator had drained the node before this drain began. It stays drained.
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
