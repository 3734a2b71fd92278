//! Refuses every drain, with a message that would clear a terminal.

use guests::{Drain, Node, Plan, Pod};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(format!("not {}:\u{1b}[2J {}", node.name, "never ".repeat(1000)))
}
