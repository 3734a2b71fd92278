//! Needs 200 MiB before it has done anything.

use std::sync::atomic::{AtomicU8, Ordering};

use guests::{Drain, Node, Plan, Pod};

guests::about!();
guests::planner!(plan);

static HUGE: [AtomicU8; 200 << 20] = [const { AtomicU8::new(0) }; 200 << 20];

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(HUGE
        .get(pods.len())
        .map_or(0, |byte| byte.fetch_add(1, Ordering::Relaxed))
        .to_string())
}
