//! Resets our conditions when no process drains the node any more: a node that accepts pods again is no longer
//! `Drained`, whichever way it was uncordoned, and an abandoned drain is not in progress.

use scupper_api::NodeCondition;
use scupper_engine::{Condition, Node};

use super::conditions::{COMPLETED, STARTED, UNCORDONED, pair};

/// The pair of conditions that resets our `Drained=True` on a node that is no longer cordoned. Conditions of other
/// writers stay.
pub fn conditions_of_uncordoned(node: &Node) -> Option<Vec<NodeCondition>> {
    let is_ours = |it: &Condition| it.kind == "Drained" && it.status == "True" && it.reason == COMPLETED;
    let is_stale = !node.unschedulable && node.conditions.iter().any(is_ours);
    is_stale.then(conditions_of_lifted)
}

/// The pair of conditions of a node whose cordon is lifted.
pub(super) fn conditions_of_lifted() -> Vec<NodeCondition> {
    let message = "the node was uncordoned and takes pods again";
    pair("False", "False", UNCORDONED, message)
}

/// The pair of conditions of a drain that has ended, with what has happened since, as the end of its sentence.
pub fn conditions_with_sequel(node: &Node, sequel: &str) -> Option<Vec<NodeCondition>> {
    let last = node.conditions.iter().find(|it| it.kind == "DrainInProgress")?;
    let message = format!("{}{sequel}", last.message);
    Some(pair("False", "False", &last.reason, &message))
}

/// The pair of conditions that resets our `DrainInProgress=True` after its drain was abandoned.
pub fn conditions_of_abandoned(node: &Node, message: &str) -> Option<Vec<NodeCondition>> {
    let is_ours =
        |it: &Condition| it.kind == "DrainInProgress" && it.status == "True" && it.reason == STARTED;
    let is_stale = node.conditions.iter().any(is_ours);
    is_stale.then(|| pair("False", "False", "DrainAbandoned", message))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use scupper_engine::Uid;

    use super::*;

    fn node(unschedulable: bool, status: &str, reason: &str) -> Node {
        with("Drained", unschedulable, status, reason)
    }

    fn with(kind: &str, unschedulable: bool, status: &str, reason: &str) -> Node {
        Node {
            name: "worker-1".into(),
            uid: Uid::new("n"),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            unschedulable,
            conditions: vec![Condition {
                kind: kind.into(),
                status: status.into(),
                reason: reason.into(),
                message: String::new(),
                since: None,
            }],
            checkpoint: None,
            cancel: None,
            resource_version: "1".into(),
        }
    }

    #[test]
    fn only_our_own_condition_is_cleared_on_a_schedulable_node() {
        let pair = conditions_of_uncordoned(&node(false, "True", COMPLETED)).unwrap();
        let statuses: Vec<_> = pair.iter().map(|it| (it.kind, it.status)).collect();
        assert_eq!(statuses, [("DrainInProgress", "False"), ("Drained", "False")]);
        for other in [
            node(true, "True", COMPLETED),
            node(false, "False", COMPLETED),
            node(false, "True", "KubectlDrainCompleted"),
        ] {
            assert_eq!(conditions_of_uncordoned(&other), None, "{other:?}");
        }
    }

    #[test]
    fn only_a_drain_of_ours_in_progress_is_called_abandoned() {
        let of =
            |status, reason| conditions_of_abandoned(&with("DrainInProgress", true, status, reason), "gone");
        let pair = of("True", STARTED).unwrap();
        let statuses: Vec<_> = pair.iter().map(|it| (it.kind, it.status)).collect();
        assert_eq!(statuses, [("DrainInProgress", "False"), ("Drained", "False")]);
        assert_eq!(of("False", STARTED), None);
        assert_eq!(of("True", "KubectlDrain"), None);
        assert_eq!(
            conditions_of_abandoned(&node(true, "True", COMPLETED), "gone"),
            None
        );
    }
}
