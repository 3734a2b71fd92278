//! Reports nodes that stay out of service in Slurm after the uncordon, and changes nothing.

use scupper_sdk::{Call, Pod};

use super::naming::Naming;
use super::node::SlurmNode;
use super::reason::{self, Owner, SILENT};
use super::{names, node_events};
use crate::settings::Settings;

/// `all` is Slurm's list before the last change.
pub(super) fn report(call: &Call, settings: &Settings, workers: &[&Pod], all: &[SlurmNode], owner: &Owner) {
    // If the names come from pods, the pods may be gone; then foreign drains are unknown.
    let names = names(call, settings, workers).unwrap_or_default();
    for node in all {
        let is_named = names.contains(&node.name);
        if owner.node_has_drained(node) && !is_mapped(call, settings, workers, node) {
            node_events::not_mapped(call, node);
        } else if is_named && owner.is_of_another(node) {
            node_events::of_another(node);
        } else if is_named {
            report_state(node, owner);
        }
    }
}

/// Whether this Slurm node belongs to the Kubernetes node. If the names come from pods, which may be gone, only the reason
/// can say it.
pub(super) fn is_mapped(call: &Call, settings: &Settings, workers: &[&Pod], node: &SlurmNode) -> bool {
    settings.slurmrestd.naming == Naming::Pods
        || names(call, settings, workers).is_ok_and(|names| names.contains(&node.name))
}

fn report_state(node: &SlurmNode, owner: &Owner) {
    let ours = owner.node_has_drained(node);
    let revived = ours && reason::records_down(node);
    let words = ["DRAIN", "DOWN", "FAIL"].into_iter().filter(|word| match *word {
        "DRAIN" => node.is_draining() && !ours,
        "DOWN" => node.has("DOWN") && !revived,
        word => node.has(word),
    });
    let state = words.collect::<Vec<_>>().join("+");
    let reason = if ours { reason::after(node) } else { &node.reason };
    if state == "DOWN" && reason == SILENT {
        node_events::silent(node);
    } else if !state.is_empty() {
        node_events::stays_out(node, &state, reason);
    }
}
