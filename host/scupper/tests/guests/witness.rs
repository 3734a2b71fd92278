//! Writes its input into the reasons, field by field.

use guests::{Call, Drain, Node, Outcome, Phase, Plan, Pod, Verdict, decision};

guests::about!();
guests::planner!(plan);
guests::hooks!([Phase::AfterDrain, Phase::BeforeCordon, Phase::AfterDrain], step);

fn plan(drain: Drain, node: Node, pods: Vec<Pod>, draft: Plan) -> Result<Plan, String> {
    let mut decisions = Vec::new();
    for (index, pod) in pods.iter().enumerate() {
        let part = match index {
            0 => format!("{drain:?}"),
            1 => format!("{node:?}"),
            _ => format!("{:?}", (&pod.labels, &pod.annotations, &pod.controller)),
        };
        decisions.push(decision(&pod.uid, Verdict::Keep, part));
    }
    if let Some(pod) = pods.last() {
        return Err(format!("{pod:?} {:?}", draft.waves));
    }
    Ok(Plan {
        decisions,
        waves: Vec::new(),
    })
}

fn step(call: &Call) -> Outcome {
    Outcome::failed(format!(
        "{:?} {:?} {:?} {}",
        call.phase,
        call.subject,
        call.state,
        call.pods.len()
    ))
    .into()
}
