//! Looks a name up in the network.

use guests::{Drain, Node, Plan, Pod};

mod system {
    wit_bindgen::generate!({
        inline: "package guests:sockets;
            package wasi:sockets@0.2.6 { interface ip-name-lookup { resolve: func(name: string) -> bool; } }
            world system { import wasi:sockets/ip-name-lookup@0.2.6; }",
        generate_all,
    });
}

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(system::wasi::sockets::ip_name_lookup::resolve("metadata").to_string())
}
