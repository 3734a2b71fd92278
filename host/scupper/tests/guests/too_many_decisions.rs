//! Answers with slightly too many decisions.

use guests::{Drain, Node, Plan, Pod};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, mut draft: Plan) -> Result<Plan, String> {
    draft.decisions = draft
        .decisions
        .iter()
        .cycle()
        .take(draft.decisions.len() * 3)
        .cloned()
        .collect();
    Ok(draft)
}
