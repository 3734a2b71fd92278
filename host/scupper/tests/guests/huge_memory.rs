//! Needs 200 MiB at its start.

use std::sync::Mutex;

use guests::{Drain, Node, Plan, Pod};

guests::about!();
guests::planner!(plan);

static HUGE: Mutex<[u8; 200 << 20]> = Mutex::new([0; 200 << 20]);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    let mut huge = HUGE.lock().map_err(|error| error.to_string())?;
    let byte = huge.get_mut(pods.len()).ok_or("so many pods")?;
    *byte += 1;
    Err(byte.to_string())
}
