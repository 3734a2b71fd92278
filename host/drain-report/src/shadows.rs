//! What a shadow policy would have changed, for programs.

use scupper_recording::{PodDifference, ShadowPlan, ShadowResult, Treatment};
use serde_json::{Value, json};

/// What a shadow would change.
pub fn shadow_to_json(plan: &ShadowPlan) -> Value {
    let treatment = |it: &Treatment| {
        json!({
            "verdict": it.verdict.to_string(),
            "reason": it.reason,
            "wave": it.wave.as_ref().map(|(number, _)| number),
            "place": it.place,
            "graceSeconds": it.grace_seconds,
        })
    };
    let pod = |one: &PodDifference| {
        json!({
            "namespace": one.pod.namespace,
            "name": one.pod.name,
            "uid": one.pod.uid.as_str(),
            "active": treatment(&one.active),
            "shadow": treatment(&one.shadow),
        })
    };
    let (pods, message) = match &plan.result {
        ShadowResult::Differs(pods) => (pods.iter().map(pod).collect(), Value::Null),
        ShadowResult::Refuses(message) | ShadowResult::Failed(message) => {
            (json!([]), message.as_str().into())
        }
        ShadowResult::Agrees | ShadowResult::Unfinished => (json!([]), Value::Null),
    };
    json!({
        "policy": plan.policy,
        "insteadOf": plan.instead_of,
        "result": plan.result.name(),
        "message": message,
        "pods": pods,
    })
}
