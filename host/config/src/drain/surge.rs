//! Surge: which Deployments get replacements on other nodes first, because a budget never lets their pods go, and how.

use scupper_engine::{SurgeMethod, SurgeSettings};

use super::table::DAY_MS;
use crate::document::Node;
use crate::place::FieldPath;
use crate::problem::Problems;
use crate::rules;
use crate::shape::{Field, Object, Shape};

/// More than an operator can review.
const NAMESPACES: usize = 256;

pub(super) static SURGE: Object = Object {
    fields: &[
        Field::required(
            "timeout",
            Shape::Duration {
                least_ms: 1_000,
                most_ms: DAY_MS,
            },
            "How long a surge may take until the pods on the node leave. After that they wait for their budget as they \
             would without a surge.",
        ),
        Field::new(
            "method",
            Shape::OneOf(&["restart", "scale"]),
            "`restart`: the drain restarts the Deployment as kubectl rollout restart does; the rollout replaces all its \
             pods. `scale`: the drain raises the Deployment's replicas by one, evicts the pods on the node as the budget \
             allows, and then takes the replica back. Another tool that owns spec.replicas, such as GitOps or an \
             autoscaler, would undo a raise; it does not undo a restart. Default restart.",
        ),
        Field::new(
            "namespaces",
            Shape::List {
                of: &Shape::Text(&rules::OBJECT_NAME),
                most: NAMESPACES,
            },
            "Only Deployments in these namespaces. Default: Deployments in every namespace.",
        ),
    ],
    one_of: &[],
};

/// Finds contradictions.
pub(super) fn check(node: &Node, path: &FieldPath, problems: &mut Problems) {
    let is_empty = node.texts_of("namespaces").is_empty();
    if let Some(named) = node.get("namespaces").filter(|_| is_empty) {
        let message = "names no namespace: no Deployment would be surged; leave surge out for that";
        problems.add(named.at, &path.key("namespaces"), message);
    }
}

/// The engine's settings.
pub(super) fn read(node: &Node) -> Option<SurgeSettings> {
    Some(SurgeSettings {
        method: match node.get("method").and_then(Node::text) {
            Some("scale") => SurgeMethod::Scale,
            _ => SurgeMethod::Restart,
        },
        namespaces: node.texts_of("namespaces").into_iter().collect(),
        timeout: node.get("timeout").and_then(Node::duration)?,
    })
}
