//! Answers with a million decisions on its one pod.

use guests::{Drain, Node, Plan, Pod, Verdict, decision};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    let uid = pods.first().map(|pod| pod.uid.as_str()).unwrap_or_default();
    // Two thirds of its memory in one list whose strings are all empty.
    let decisions = (0..400_000).map(|_| decision("", Verdict::Keep, "")).collect();
    let waves = vec![guests::Wave::new(uid, Vec::new())];
    Ok(Plan { decisions, waves })
}
