//! The cluster as the cordon door sees it: the door asks, the cluster edge looks, and neither knows the other.

use std::sync::Arc;

use futures::{FutureExt as _, Stream, StreamExt as _};
use scupper_engine::{Checkpoint, Intent, Node, Outcome, Phase, Request};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::PluginOptions;
use crate::lease::NodeLeases;
use crate::reporter::condition_cleanup;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_triggers::cordon::{self, CordonDeps, CordonOptions, LABEL, NodeFacts, ReadNode, TRIGGER};
use scupper_triggers::{DrainCommand, DriverState, ResumePoint};

/// How long an uncordon may take, as for a LifecycleEvent.
const UNCORDON_WITHIN: std::time::Duration = std::time::Duration::from_secs(5 * 60);

/// What the door is connected with.
pub(crate) struct CordonTriggerDeps<N> {
    pub(crate) nodes: N,
    pub(crate) demands: mpsc::Sender<DrainCommand>,
    pub(crate) standing: watch::Receiver<DriverState>,
    pub(crate) alone: watch::Receiver<bool>,
    pub(crate) leases: NodeLeases,
}

/// Opens the door. It closes with the rest of the driver.
pub(crate) fn start<N>(
    cluster: &Cluster,
    options: &PluginOptions,
    wires: CordonTriggerDeps<N>,
) -> JoinHandle<()>
where
    N: Stream<Item = Option<Node>> + Send + Unpin + 'static,
{
    let CordonTriggerDeps {
        nodes,
        demands,
        standing,
        alone,
        leases,
    } = wires;
    let name = options.node_name.clone();
    let (shown, seen) = watch::channel(None);
    condition_cleanup::take_back(leases, standing.clone(), seen);
    let clock = options.clock;
    let nodes = nodes.map(move |node| {
        let seen = node.as_ref().map(|node| view(node, clock));
        shown.send_replace(node);
        seen
    });
    let deps = CordonDeps {
        nodes: nodes.boxed(),
        read_node: look(cluster.clone(), name.clone(), clock),
        commands: demands,
        driver_state: standing,
        sole_instance: alone,
    };
    let options = CordonOptions {
        node: name,
        sla: options.sla,
        uncordon_sla: UNCORDON_WITHIN,
        clock,
    };
    tokio::spawn(cordon::run(options, deps))
}

/// How a wish of this door has been met by another process, if it has: a node that is drained is not drained again.
pub(crate) fn dealt_with(request: &Request, node: &Node) -> Option<Outcome> {
    let is_drained = node.unschedulable && says_drained(node);
    (request.trigger == TRIGGER && request.intent == Intent::Drain && is_drained).then_some(Outcome::Drained)
}

/// What another process was at, if it was for this door.
fn left(checkpoint: &Checkpoint, clock: Clock) -> Option<ResumePoint> {
    let is_ours = checkpoint.trigger == TRIGGER && checkpoint.phase != Phase::Finished;
    is_ours.then(|| ResumePoint {
        id: checkpoint.id.clone(),
        name: checkpoint.name.clone(),
        intent: checkpoint.intent(),
        // A wall time on the node.
        deadline: checkpoint.deadline.map(|wall| clock.moment_of_wall(wall)),
        finished: false,
    })
}

fn look(cluster: Cluster, name: String, clock: Clock) -> ReadNode {
    Arc::new(move || {
        let (cluster, name) = (cluster.clone(), name.clone());
        async move {
            match cluster.node(&name).await {
                Ok(node) => node.as_ref().map(|node| view(node, clock)),
                Err(error) => {
                    tracing::warn!(%error, "the node could not be looked at; trying again");
                    None
                }
            }
        }
        .boxed()
    })
}

fn says_drained(node: &Node) -> bool {
    let mut conditions = node.conditions.iter();
    conditions.any(|condition| condition.kind == "Drained" && condition.status == "True")
}

fn view(node: &Node, clock: Clock) -> NodeFacts {
    NodeFacts {
        uid: node.uid.0.clone(),
        labelled: node.labels.get(LABEL).is_some_and(|value| value == "true"),
        cordoned: node.unschedulable,
        own_cordon: node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon),
        drained: says_drained(node),
        resume_point: node.checkpoint.as_ref().and_then(|mark| left(mark, clock)),
    }
}
