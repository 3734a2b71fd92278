//! Pods that a later policy protects less than an earlier one.

use scupper_engine::{Loosened, Plan, Pod};

use super::messages::one_line;

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
