//! Reads the environment, as a program for an operating system would.

use guests::{Drain, Node, Plan, Pod};

mod system {
    wit_bindgen::generate!({
        inline: "package guests:system;
            package wasi:cli@0.2.6 { interface environment { get-arguments: func() -> list<string>; } }
            world system { import wasi:cli/environment@0.2.6; }",
        generate_all,
    });
}

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(system::wasi::cli::environment::get_arguments().join(" "))
}
