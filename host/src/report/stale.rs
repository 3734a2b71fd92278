//! A node that takes pods again is not drained any more, whoever gave it back.

use scupper_engine::{Condition, Node};

use super::conditions::{COMPLETED, ConditionChange, pair};

/// The pair of conditions that takes our `Drained=True` back from a node that is not cordoned any more; somebody else's
/// is not ours to take back.
pub fn conditions_of_uncordoned(node: &Node) -> Option<Vec<ConditionChange>> {
    let is_ours = |it: &Condition| it.kind == "Drained" && it.status == "True" && it.reason == COMPLETED;
    let is_stale = !node.unschedulable && node.conditions.iter().any(is_ours);
    is_stale.then(|| {
        pair(
            "False",
            "False",
            "Uncordoned",
            "the node was uncordoned and takes pods again",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use scupper_engine::Uid;

    use super::*;

    fn node(unschedulable: bool, status: &str, reason: &str) -> Node {
        Node {
            name: "worker-1".into(),
            uid: Uid("n".into()),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            unschedulable,
            conditions: vec![Condition {
                kind: "Drained".into(),
                status: status.into(),
                reason: reason.into(),
                message: String::new(),
                since: None,
            }],
            checkpoint: None,
            resource_version: "1".into(),
        }
    }

    #[test]
    fn only_our_own_word_on_a_node_that_takes_pods_again_is_taken_back() {
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
}
