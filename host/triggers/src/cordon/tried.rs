//! Whether a cordon was tried, by the condition that the report of its drain leaves on the node: a driver that starts knows
//! nothing else of it.

use scupper_engine::{Condition, Node};

use super::state::{UNCORDONED, UNLABELLED};

/// What the condition's message ends with once the cordon is lifted: the next cordon is a new request.
pub const LIFTED_SINCE: &str = "; the node was uncordoned since";

/// The condition's reasons after a drain that was tried and has not drained the node.
const REASONS: [&str; 4] = [
    "DrainCancelled",
    "DrainDeadlineExceeded",
    "DrainPolicyFailed",
    "DrainFailed",
];

/// The last drain of the node was that of a cordon, and has ended without success. One that the trigger withdrew does not
/// count: the node did not ask for it any more.
pub fn was_tried(node: &Node) -> bool {
    let drain = format!("drain cordon-{}: ", node.name);
    let says_so = |it: &Condition| {
        let end = it.message.strip_prefix(&drain);
        let withdrawn = |end: &str| {
            let reason = end.strip_prefix("cancelled: ");
            reason.is_some_and(|reason| reason.starts_with(UNCORDONED) || reason.starts_with(UNLABELLED))
        };
        it.kind == "DrainInProgress"
            && REASONS.contains(&it.reason.as_str())
            && !it.message.ends_with(LIFTED_SINCE)
            && end.is_some_and(|end| !withdrawn(end))
    };
    node.conditions.iter().any(says_so)
}

#[cfg(test)]
mod tests {
    use scupper_engine::Uid;

    use super::*;

    fn node(reason: &str, message: &str) -> Node {
        Node {
            name: "worker-1".to_owned(),
            uid: Uid::new("n"),
            labels: [].into(),
            annotations: [].into(),
            unschedulable: true,
            conditions: vec![Condition {
                kind: "DrainInProgress".to_owned(),
                status: "False".to_owned(),
                reason: reason.to_owned(),
                message: message.to_owned(),
                since: None,
            }],
            checkpoint: None,
            cancel: None,
            resource_version: "1".to_owned(),
        }
    }

    #[test]
    fn only_a_cordon_whose_drain_ended_without_success_was_tried() {
        for (reason, message, expected) in [
            (
                "DrainCancelled",
                "drain cordon-worker-1: cancelled: scupper cancel asked for it",
                true,
            ),
            (
                "DrainDeadlineExceeded",
                "drain cordon-worker-1: the deadline passed",
                true,
            ),
            (
                "DrainPolicyFailed",
                "drain cordon-worker-1: policy slurm: no",
                true,
            ),
            (
                "DrainCancelled",
                "drain cordon-worker-1: cancelled: the node was uncordoned; and more",
                false,
            ),
            (
                "DrainCancelled",
                "drain cordon-worker-1: cancelled: the label that asked for it was taken away",
                false,
            ),
            (
                "DrainDeadlineExceeded",
                "drain cordon-worker-1: the deadline passed; the node was uncordoned since",
                false,
            ),
            ("DrainRefused", "drain cordon-worker-1: policy slurm: no", false),
            ("DrainCancelled", "drain maintenance-7: cancelled: stopped", false),
            (
                "DrainCancelled",
                "drain cordon-worker-10: cancelled: stopped",
                false,
            ),
            ("DrainCompleted", "drain cordon-worker-1: 5 pods gone", false),
            ("DrainStarted", "drain cordon-worker-1 is under way", false),
            (
                "DrainLost",
                "drain cordon-worker-1: the request ended before its work was done: the node does not ask for it any more",
                false,
            ),
        ] {
            assert_eq!(was_tried(&node(reason, message)), expected, "{reason}: {message}");
        }
    }
}
