//! Pods that a later policy protects less than an earlier one, in a plan for people and for programs.

use scupper_engine::{Plan, Pod, Ruling};
use scupper_report::loosened_texts;
use serde_json::{Value, json};

/// The lines of a plan: a heading, and one for each pod.
pub(super) fn loosened_lines(plan: &Plan, pods: &[Pod]) -> Vec<String> {
    let texts = loosened_texts(plan, pods);
    let heading = "A later policy loosens what an earlier one decided:".to_owned();
    let heading = (!texts.is_empty()).then_some(heading);
    let texts = texts.into_iter().map(|text| format!("  {text}"));
    heading.into_iter().chain(texts).collect()
}

/// One object for each pod.
pub(super) fn loosened_to_json(plan: &Plan) -> Value {
    let ruling = |ruling: &Ruling| {
        json!({"policy": ruling.policy, "verdict": ruling.verdict.to_string(),
            "holdSeconds": ruling.hold.map(|hold| hold.as_secs())})
    };
    let all = plan.loosened.iter().map(|loosened| {
        json!({"uid": loosened.pod.as_str(), "earlier": ruling(&loosened.earlier), "later": ruling(&loosened.later)})
    });
    all.collect()
}
