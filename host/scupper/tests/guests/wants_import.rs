//! Imports an interface in our namespace that does not exist.

use guests::{Drain, Node, Plan, Pod};

mod secrets {
    wit_bindgen::generate!({
        inline: "package guests:secrets;
            package scupper:drain@0.1.0 { interface secrets { reveal: func() -> string; } }
            world secrets { import scupper:drain/secrets@0.1.0; }",
        generate_all,
    });
}

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(secrets::scupper::drain::secrets::reveal())
}
