//! Reports nodes that stay out of service in Slurm after the uncordon, and changes nothing.

use scupper_sdk::{Call, Pod};

use super::node::SlurmNode;
use super::{names, node_events, reason};
use crate::settings::Settings;

/// `all` is Slurm's list after the last change, or as it will be after the changes.
pub(super) fn report(call: &Call, settings: &Settings, workers: &[&Pod], all: &[SlurmNode]) {
    // If the names come from pods, the pods may be gone; then foreign drains are unknown.
    let Ok(names) = names(call, settings, workers) else {
        return;
    };
    for node in all.iter().filter(|node| names.contains(&node.name)) {
        let ours = reason::is_of_this_node(call, node);
        let revived = ours && reason::records_down(node);
        let words = ["DRAIN", "DOWN", "FAIL"].into_iter().filter(|word| match *word {
            "DRAIN" => node.is_draining() && !ours,
            "DOWN" => node.has("DOWN") && !revived,
            word => node.has(word),
        });
        let state = words.collect::<Vec<_>>().join("+");
        if !state.is_empty() {
            let reason = if ours {
                reason::after(call, node)
            } else {
                node.reason.clone()
            };
            node_events::stays_out(node, &state, &reason);
        }
    }
}
