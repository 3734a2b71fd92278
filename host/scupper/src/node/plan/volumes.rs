//! The wait for volumes, in a plan.

use std::collections::BTreeSet;

use scupper_engine::{HumanDuration, Plan, Pod, VolumeClaim, VolumeWait, named};
use serde_json::{Value, json};

use scupper_common::text::spaced_line;

/// Maximum number of claims that are named; the others are counted.
const NAMED: usize = 8;

/// The lines about the wait after the last pod; none if the drain does not wait.
pub(super) fn plan_volume_lines(plan: &Plan, pods: &[Pod], wait: Option<VolumeWait>) -> Vec<String> {
    let Some(wait) = wait else {
        return Vec::new();
    };
    let end = if wait.or_fail {
        "then fails"
    } else {
        "then ends as Drained and names those that are still attached"
    };
    let mut lines = vec![format!(
        "after the last pod: waits at most {} until the node's volumes are detached, {end}",
        HumanDuration(wait.at_most)
    )];
    let claims = claims(plan, pods);
    if !claims.is_empty() {
        let named = spaced_line(&named(&claims, NAMED));
        lines.push(format!("  claims of the pods that leave: {named}"));
    }
    lines
}

/// The same as JSON; null if the drain does not wait.
pub(super) fn plan_volumes_to_json(plan: &Plan, pods: &[Pod], wait: Option<VolumeWait>) -> Value {
    wait.map_or(Value::Null, |wait| {
        let claims = claims(plan, pods);
        json!({
            "atMostSeconds": wait.at_most.as_secs_f64(),
            "otherwise": if wait.or_fail { "fail" } else { "warn" },
            "claims": claims.iter().map(VolumeClaim::to_string).collect::<Vec<_>>(),
        })
    })
}

/// The claims that pods that leave use, and no pod that stays.
fn claims(plan: &Plan, pods: &[Pod]) -> BTreeSet<VolumeClaim> {
    let leaves = |pod: &&Pod| {
        let decision = plan.decision(&pod.id.uid);
        decision.is_some_and(|decision| decision.verdict.leaves())
    };
    let of = |pod: &Pod| {
        let namespace = pod.id.namespace.clone();
        let names = pod.volume_claims.clone().into_iter();
        names.map(move |name| VolumeClaim {
            namespace: namespace.clone(),
            name,
        })
    };
    let (leaving, staying): (Vec<_>, Vec<_>) = pods.iter().partition(leaves);
    let used: BTreeSet<_> = staying.into_iter().flat_map(of).collect();
    let leaving = leaving.into_iter().flat_map(of);
    leaving.filter(|claim| !used.contains(claim)).collect()
}
