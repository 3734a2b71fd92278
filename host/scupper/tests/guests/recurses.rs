//! Calls itself for ever.

use guests::{Drain, Node, Plan, Pod};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(deeper(pods.len() as u64).to_string())
}

/// Nothing of it lies in memory, and it is no loop in disguise.
#[inline(never)]
fn deeper(turn: u64) -> u64 {
    if turn == u64::MAX {
        0
    } else {
        deeper(turn + 1).rotate_left(7) ^ turn
    }
}
