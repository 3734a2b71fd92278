//! What stays out of service in Slurm after the uncordon: it is said, and nothing is done about it.

use scupper_sdk::{Call, Pod};

use super::node::SlurmNode;
use super::{names, node_events, reason};
use crate::settings::Settings;

/// `all` is what Slurm says after the last change, or what it will say once the changes count.
pub(super) fn report(call: &Call, settings: &Settings, workers: &[&Pod], all: &[SlurmNode]) {
    // Where the names come from the pods, there may be none any more; then nothing is known of foreign drains.
    let Ok(names) = names(call, settings, workers) else {
        return;
    };
    for node in all.iter().filter(|node| names.contains(&node.name)) {
        let ours = reason::is_of_this_node(call, node);
        let revived = ours && reason::says_down(node);
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
