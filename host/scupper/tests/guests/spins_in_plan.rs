//! Never returns from a plan.

use guests::{Drain, Node, Plan, Pod, spin};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    spin()
}
