//! Surge: which Deployments get replacements on other nodes first, because a budget never lets their pods go, and how.

use std::time::Duration;

use super::document::Node;
use super::place::FieldPath;
use super::problem::Problems;
use super::rules;
use super::shape::{Field, Object, Shape};

const DAY_MS: u64 = 24 * 3600 * 1000;
/// More than an operator can review.
const NAMESPACES: usize = 256;

/// Which Deployments a drain surges, how, and how long that may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurgeFile {
    /// How.
    pub method: SurgeBy,
    /// Only Deployments in these namespaces; empty: in all.
    pub namespaces: Vec<String>,
    /// How long a surge may take.
    pub timeout: Duration,
}

/// How a Deployment gets replacements for its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurgeBy {
    /// It is restarted.
    Restart,
    /// It gets one replica more, which is taken back.
    Scale,
}

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

/// The settings under `drain.surge`, if they are consistent.
pub(super) fn of(root: &Node, problems: &mut Problems) -> Option<SurgeFile> {
    let node = root.get("drain")?.get("surge")?;
    let namespaces = node.texts_of("namespaces");
    if let Some(named) = node.get("namespaces").filter(|_| namespaces.is_empty()) {
        let path = FieldPath::default().key("drain").key("surge").key("namespaces");
        let message = "names no namespace: no Deployment would be surged; leave surge out for that";
        problems.add(named.at, &path, message);
    }
    Some(SurgeFile {
        method: match node.get("method").and_then(Node::text) {
            Some("scale") => SurgeBy::Scale,
            _ => SurgeBy::Restart,
        },
        namespaces,
        timeout: node.get("timeout").and_then(Node::duration)?,
    })
}
