//! Decides on its first pod twice.

use guests::{Drain, Node, Plan, Pod, Verdict, decision};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, mut draft: Plan) -> Result<Plan, String> {
    let again = pods
        .first()
        .map(|pod| decision(&pod.uid, Verdict::Keep, "once more"));
    draft.decisions.extend(again);
    Ok(draft)
}
