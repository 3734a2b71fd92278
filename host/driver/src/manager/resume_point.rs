//! Where another process left a drain, by its checkpoint on the node. It is read when it is needed, because that process
//! may have continued to write after this one started.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use scupper_engine::{Checkpoint, Intent, Node, Outcome, Request, Trigger};
use tokio::time::sleep;

use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_triggers::{ResumePoint, slm};

/// A node that could not be read is read again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// The node as it is now; `None`: it does not exist. Waits for an API server that does not answer.
pub(crate) async fn current_node(cluster: &Cluster, name: &str) -> Option<Node> {
    loop {
        match cluster.node(name).await {
            Ok(node) => return node,
            Err(error) => tracing::warn!(%error, "the node could not be read; trying again"),
        }
        sleep(RETRY).await;
    }
}

/// How the SLM trigger finds the drain that another process left.
pub(crate) fn finder(cluster: &Cluster, name: &str) -> slm::FindResumePoint {
    let (cluster, name) = (cluster.clone(), name.to_owned());
    Arc::new(move || {
        let (cluster, name) = (cluster.clone(), name.clone());
        async move {
            let node = current_node(&cluster, &name).await;
            node.and_then(|node| node.checkpoint).and_then(of_event)
        }
        .boxed()
    })
}

/// The drain of a LifecycleEvent that another process left on the node.
fn of_event(mark: Checkpoint) -> Option<ResumePoint> {
    (Trigger::of(&mark.trigger) == Trigger::LifecycleEvent).then(|| ResumePoint {
        intent: mark.intent,
        deadline: None,
        finished: !mark.is_under_way(),
        id: mark.id,
        name: mark.name,
    })
}

/// The unfinished drain by a cordon that another process left on the node.
pub(crate) fn of_cordon(node: &Node, clock: Clock) -> Option<ResumePoint> {
    unfinished(node, Trigger::Cordon, clock)
}

/// The unfinished drain for DrainRequests that another process left on the node.
pub(crate) fn of_drain_request(node: &Node, clock: Clock) -> Option<ResumePoint> {
    unfinished(node, Trigger::DrainRequest, clock)
}

fn unfinished(node: &Node, trigger: Trigger, clock: Clock) -> Option<ResumePoint> {
    let mark = node.checkpoint.as_ref()?;
    let is_unfinished = Trigger::of(&mark.trigger) == trigger && mark.is_under_way();
    is_unfinished.then(|| ResumePoint {
        id: mark.id.clone(),
        name: mark.name.clone(),
        intent: mark.intent,
        // The node holds a wall-clock time.
        deadline: mark.deadline.map(|wall| clock.moment_of_wall(wall)),
        finished: false,
    })
}

/// The unfinished drain or uncordon that a command began on the node.
pub(crate) fn of_command(node: &Node) -> Option<&Checkpoint> {
    let mark = node.checkpoint.as_ref()?;
    (Trigger::of(&mark.trigger) == Trigger::Command && mark.is_under_way()).then_some(mark)
}

/// Another process has already drained the cordoned node that this request is about.
pub(crate) fn drained_by_another(request: &Request, node: &Node) -> Option<Outcome> {
    let is_for_cordon = Trigger::of(&request.trigger) == Trigger::Cordon && request.intent == Intent::Drain;
    (is_for_cordon && node.unschedulable && is_marked_drained(node)).then_some(Outcome::Drained)
}

/// The node's condition says that it is drained.
pub(crate) fn is_marked_drained(node: &Node) -> bool {
    let mut conditions = node.conditions.iter();
    conditions.any(|condition| condition.kind == "Drained" && condition.status == "True")
}
