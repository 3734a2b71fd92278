//! Force at the deadline: which remaining pods a drain deletes shortly before it.

use std::time::Duration;

use scupper_engine::{ForceAtDeadline, ForcedPods};

use super::table::DAY_MS;
use crate::document::Node;
use crate::place::FieldPath;
use crate::problem::Problems;
use crate::rules;
use crate::shape::{Field, Object, Shape};

/// More than an operator can review.
const NAMESPACES: usize = 256;
/// The longest grace period of a deleted pod if the file does not set it.
const GRACE: Duration = Duration::from_secs(30);

pub(super) static AT_DEADLINE: Object = Object {
    fields: &[
        Field::required(
            "delete",
            Shape::Object(&DELETE),
            "Which pods the drain may delete. A pod must match every restriction given.",
        ),
        Field::new(
            "grace-period",
            Shape::Duration {
                least_ms: 1_000,
                most_ms: DAY_MS,
            },
            "The longest grace period of a deleted pod, in whole seconds. A pod whose own is shorter keeps it. Default \
             30s.",
        ),
        Field::required(
            "within",
            Shape::Duration {
                least_ms: 11_000,
                most_ms: DAY_MS,
            },
            "How long before its deadline the drain begins to delete pods; more than grace-period and 10 seconds.",
        ),
    ],
    one_of: &[],
};

static DELETE: Object = Object {
    fields: &[
        Field::new(
            "namespaces",
            Shape::List {
                of: &Shape::Text(&rules::OBJECT_NAME),
                most: NAMESPACES,
            },
            "Only pods in these namespaces. Default: pods in every namespace that match the other restrictions.",
        ),
        Field::new(
            "priority-below",
            Shape::Whole {
                least: i32::MIN as i64 + 1,
                most: i32::MAX as i64,
            },
            "Only pods with a priority below this number. The classes system-cluster-critical and system-node-critical have 2000000000 \
             and more. Default: pods of any priority that match the other restrictions.",
        ),
        Field::new(
            "everything",
            Shape::Bool,
            "All pods that the drain is to evict, those of system namespaces included; instead of restrictions. Default \
             false.",
        ),
        Field::new(
            "await-completion",
            Shape::Bool,
            "Also pods that the plan lets finish by themselves. Default false.",
        ),
    ],
    one_of: &[],
};

/// Finds contradictions.
pub(super) fn check(node: &Node, path: &FieldPath, problems: &mut Problems) {
    let grace = grace_period(node);
    // Deletions have whole seconds.
    if let Some(field) = node.get("grace-period").filter(|_| grace.subsec_nanos() > 0) {
        let message = "must be in whole seconds, as the API server counts grace periods";
        problems.add(field.at, &path.key("grace-period"), message);
    }
    let shortest = grace + ForceAtDeadline::RESERVE;
    if let Some(within) = node.get("within")
        && within.duration().is_some_and(|span| span <= shortest)
    {
        let message = format!(
            "must be more than {}s, which is grace-period and 10 seconds: else deleted pods remain at the deadline",
            shortest.as_secs()
        );
        problems.add(within.at, &path.key("within"), message);
    }
    if let Some(delete) = node.get("delete") {
        check_restrictions(delete, &path.key("delete"), problems);
    }
}

/// The engine's settings.
pub(super) fn read(node: &Node) -> Option<ForceAtDeadline> {
    let delete = node.get("delete")?;
    let flag = |name: &str| delete.get(name).and_then(Node::boolean).unwrap_or_default();
    let priority = delete.get("priority-below").and_then(Node::whole);
    let namespaces = delete.get("namespaces");
    Some(ForceAtDeadline {
        pods: ForcedPods {
            namespaces: namespaces.map(|_| delete.texts_of("namespaces").into_iter().collect()),
            priority_below: priority.and_then(|priority| i32::try_from(priority).ok()),
            await_completion: flag("await-completion"),
        },
        grace_seconds: grace_period(node).as_secs(),
        within: node.get("within").and_then(Node::duration)?,
    })
}

fn grace_period(node: &Node) -> Duration {
    node.get("grace-period").and_then(Node::duration).unwrap_or(GRACE)
}

/// Pods are deleted past their budgets only where the operator says which.
fn check_restrictions(delete: &Node, path: &FieldPath, problems: &mut Problems) {
    let everything = delete
        .get("everything")
        .and_then(Node::boolean)
        .unwrap_or_default();
    let (namespaces, priority) = (delete.get("namespaces"), delete.get("priority-below"));
    if let Some(named) = namespaces.filter(|_| delete.texts_of("namespaces").is_empty()) {
        let message = "names no namespace: no pod would be deleted; leave at-deadline out for that";
        problems.add(named.at, &path.key("namespaces"), message);
    }
    let restriction = namespaces.or(priority);
    match restriction {
        None if !everything => problems.add(
            delete.at,
            path,
            "names no pods: give namespaces or priority-below, or everything: true for all pods",
        ),
        Some(restriction) if everything => problems.add(
            restriction.at,
            path,
            "has a restriction and everything: true: leave one of the two out",
        ),
        _ => {}
    }
}
