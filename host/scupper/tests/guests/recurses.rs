//! Calls itself for ever.

use guests::{Drain, Node, Plan, Pod};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(deeper(pods.len() as u64).to_string())
}

/// The value is not kept in memory, and the recursion cannot become a loop.
#[inline(never)]
fn deeper(turn: u64) -> u64 {
    if turn == u64::MAX {
        0
    } else {
        deeper(turn + 1).rotate_left(7) ^ turn
    }
}
