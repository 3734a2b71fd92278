//! Built with the SDK from before `drain.held` and `surroundings`, and kept as a component: `former.wasm`. It reports
//! the drain as it received it.

use guests::{Call, Drain, Node, Outcome, Phase, Plan, Pod};

guests::about!();
guests::planner!(plan);
guests::hooks!([Phase::BeforeDrain, Phase::OnCancel], step);

fn plan(drain: Drain, node: Node, pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err([drain.id, drain.name, drain.trigger, node.name, pods.len().to_string()].join(" "))
}

fn step(call: &Call) -> Outcome {
    let drain = &call.drain;
    let times = [drain.started, drain.deadline.unwrap_or_default(), drain.now].map(|at| at.to_string());
    Outcome::failed([drain.id.clone(), times.join(" "), drain.found_drained.to_string()].join(" ")).into()
}
