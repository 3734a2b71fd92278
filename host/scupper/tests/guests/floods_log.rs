//! Writes a hundred thousand long lines.

use guests::{Drain, Node, Plan, Pod, log};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, draft: Plan) -> Result<Plan, String> {
    for line in 0..100_000 {
        log::write(
            log::Level::Warn,
            &format!("line {line}\n\u{1b}[31mred{}", "x".repeat(2000)),
        );
    }
    Ok(draft)
}
