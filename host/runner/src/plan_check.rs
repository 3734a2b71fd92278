//! Whether a drain could begin: asked before a node is cordoned ahead of its drain. A command that hands over does not have
//! the driver's policies and settings, so it writes its question into an annotation of the node, and the driver answers there.
//!
//! A LifecycleEvent would be the wrong question: the kubelet would set the node's conditions as for a drain.

use std::time::Duration;

use scupper_engine::{Outcome, Request};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::dry_run::dry_run;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_policy_reload::Session;

/// The annotation of a node with the question, and then with the answer.
pub const PLAN_CHECK_ANNOTATION: &str = "scupper.dev/plan-check";
/// A driver takes no longer than this to answer.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// What the annotation may say of an obstacle, in characters. The drain's own end says all of it.
const LONGEST: usize = 1_000;

/// The annotation's JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanCheck {
    /// By which a command knows its own.
    pub id: String,
    /// What it says.
    #[serde(flatten)]
    pub says: PlanCheckText,
}

/// A question or its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanCheckText {
    /// Could a drain with these flags, as a request carries them, begin now?
    Flags(String),
    /// It could, or this is in its way.
    Obstacle(Option<String>),
}

impl PlanCheck {
    /// As the annotation has it; `None`: none, or none that can be read.
    pub fn of(node: &scupper_engine::Node) -> Option<Self> {
        serde_json::from_str(node.annotations.get(PLAN_CHECK_ANNOTATION)?).ok()
    }

    /// The answer to this question.
    pub fn answered(&self, obstacle: Option<String>) -> Self {
        let obstacle = obstacle.map(|text| text.chars().take(LONGEST).collect());
        Self {
            id: self.id.clone(),
            says: PlanCheckText::Obstacle(obstacle),
        }
    }

    /// As the annotation has it.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Why a drain could not begin now; `None`: it could, or that does not become clear in time. Then the drain says it at its turn.
pub async fn obstacle(
    cluster: &Cluster,
    session: &Session,
    clock: Clock,
    request: Request,
    within: Duration,
) -> Option<String> {
    let node = request.node.clone();
    let watch = cluster.watch(&node);
    futures::pin_mut!(watch);
    match timeout(within, dry_run(cluster, session, clock, request, &mut watch)).await {
        Ok(Ok(planned)) => match planned.result {
            Ok(_) | Err(Outcome::Drained) => None,
            Err(outcome) => Some(outcome.to_string()),
        },
        Ok(Err(error)) => {
            tracing::warn!("{error}");
            None
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_has_one_form_for_both_sides() {
        let asked = PlanCheck {
            id: "command-1".to_owned(),
            says: PlanCheckText::Flags(r#"{"force":"true"}"#.to_owned()),
        };
        assert_eq!(
            asked.to_text(),
            r#"{"id":"command-1","flags":"{\"force\":\"true\"}"}"#
        );
        assert_eq!(
            asked.answered(None).to_text(),
            r#"{"id":"command-1","obstacle":null}"#
        );
        let long = asked.answered(Some("é".repeat(2_000)));
        assert!(long.to_text().len() < 2_100);
        for check in [asked, long] {
            let read: PlanCheck = serde_json::from_str(&check.to_text()).unwrap();
            assert_eq!(read, check);
        }
    }
}
