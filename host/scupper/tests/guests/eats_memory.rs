//! Takes memory until there is none.

use guests::{Drain, Node, Plan, Pod};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    loop {
        eaten.push(std::hint::black_box(vec![1; 1 << 20]));
    }
}
