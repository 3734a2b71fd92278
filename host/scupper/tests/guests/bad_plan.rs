//! Evicts a pod that does not exist.

use guests::{Drain, Node, Plan, Pod, Verdict, decision};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, mut draft: Plan) -> Result<Plan, String> {
    draft
        .decisions
        .push(decision("nobody\u{1b}[2J", Verdict::Evict, "why not"));
    Ok(draft)
}
