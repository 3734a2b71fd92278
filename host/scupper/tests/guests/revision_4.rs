//! The fourth revision has another phase than the others, and a planner that traps without pods.

use guests::{Call, Drain, Node, Outcome, Phase, Plan, Pod};

guests::about!();
guests::planner!(plan);
guests::hooks!([Phase::OnCancel], step);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, draft: Plan) -> Result<Plan, String> {
    assert!(!pods.is_empty(), "nobody on the node");
    Ok(draft)
}

fn step(_call: &Call) -> Outcome {
    Outcome::Done
}
