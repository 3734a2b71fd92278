//! Pods that a later policy protects less than an earlier one, for people and for machines.

use scupper_engine::{Loosened, Plan, Pod, Ruling};
use serde_json::{Value, json};

use super::messages::one_line;

/// The lines of a plan: a heading, and one for each pod.
pub fn loosened_lines(plan: &Plan, pods: &[Pod]) -> Vec<String> {
    let texts = loosened_texts(plan, pods);
    let heading = "A later policy loosens what an earlier one decided:".to_owned();
    let heading = (!texts.is_empty()).then_some(heading);
    let texts = texts.into_iter().map(|text| format!("  {text}"));
    heading.into_iter().chain(texts).collect()
}

/// `batch/train  namespace-modes: await completion; then jobs: evict after 4h`
pub fn loosened_texts(plan: &Plan, pods: &[Pod]) -> Vec<String> {
    let text = |loosened: &Loosened| {
        let Loosened { pod, earlier, later } = loosened;
        let name = pods.iter().find(|it| it.id.uid == *pod);
        let name = name.map_or_else(|| pod.to_string(), |pod| pod.id.to_string());
        one_line(&format!("{name}  {earlier}; then {later}"))
    };
    plan.loosened.iter().map(text).collect()
}

/// One object for each pod.
pub fn loosened_to_json(plan: &Plan) -> Value {
    let ruling = |ruling: &Ruling| {
        json!({"policy": ruling.policy, "verdict": ruling.verdict.to_string(),
            "holdSeconds": ruling.hold.map(|hold| hold.as_secs())})
    };
    let all = plan.loosened.iter().map(|loosened| {
        json!({"uid": loosened.pod.0, "earlier": ruling(&loosened.earlier), "later": ruling(&loosened.later)})
    });
    all.collect()
}
