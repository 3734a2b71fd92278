//! Gives each pod the verdict of its configuration, whatever an earlier policy decided.

use guests::{Description, Drain, Node, Plan, Pod, Verdict, config};

guests::about!(Description::new(
    "decides",
    "0.1.0",
    "Decides the same for each pod"
));
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, mut draft: Plan) -> Result<Plan, String> {
    let verdict = match config::get("verdict").as_deref() {
        Some("await completion") => Verdict::AwaitCompletion,
        Some("delete") => Verdict::Delete,
        Some("refuse") => Verdict::Refuse,
        _ => Verdict::Evict,
    };
    if verdict == Verdict::Refuse {
        draft.waves.clear();
    }
    for decision in &mut draft.decisions {
        decision.verdict = verdict;
        decision.reason = "configured".to_owned();
    }
    Ok(draft)
}
