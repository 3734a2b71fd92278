//! Panics in a function with a name, in its planner and in its hook.

use guests::{Call, Drain, Node, Outcome, Phase, Plan, Pod};

guests::about!();
guests::planner!(plan);
guests::hooks!([Phase::BeforeDrain], step);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(look_up_the_impossible(pods.len()))
}

fn step(call: &Call) -> Outcome {
    Outcome::failed(look_up_the_impossible(call.pods.len())).into()
}

#[inline(never)]
fn look_up_the_impossible(pods: usize) -> String {
    match std::hint::black_box(pods) {
        usize::MAX => String::new(),
        _ => panic!("there is no such pod"),
    }
}
