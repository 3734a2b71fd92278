//! The cordon trigger's access to the node, by means of the cluster edge.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, Stream, StreamExt as _};
use scupper_engine::{Checkpoint, Intent, Node};
use tokio::sync::{mpsc, watch};

use crate::KubeletPluginOptions;
use crate::manager::resume_point::{self, LeftDrain};
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_triggers::cordon::{self, CordonDeps, CordonOptions, LABEL, NodeFacts, ReadNode, UNCORDON_LABEL};
use scupper_triggers::{DrainCommand, DriverChanges};

/// How long an uncordon may take, as for a LifecycleEvent.
const UNCORDON_WITHIN: Duration = Duration::from_secs(5 * 60);

/// What the trigger reads and where its commands go.
pub(crate) struct CordonTriggerDeps<N> {
    pub(crate) nodes: N,
    pub(crate) commands: mpsc::Sender<DrainCommand>,
    pub(crate) driver_changes: DriverChanges,
    pub(crate) sole_instance: watch::Receiver<bool>,
    /// The time limit of a drain.
    pub(crate) sla: Option<Duration>,
    /// What a former process left on the node.
    pub(crate) left: LeftDrain,
    /// Receives each state of the node that the trigger sees.
    pub(crate) seen: watch::Sender<Option<Node>>,
}

/// The trigger. It ends with the driver.
pub(crate) fn run<N>(
    cluster: &Cluster,
    options: &KubeletPluginOptions,
    deps: CordonTriggerDeps<N>,
) -> impl Future<Output = ()> + Send + use<N>
where
    N: Stream<Item = Option<Node>> + Send + Unpin + 'static,
{
    let CordonTriggerDeps {
        nodes,
        commands,
        driver_changes,
        sole_instance,
        sla,
        left,
        seen,
    } = deps;
    let name = options.node_name.clone();
    let clock = options.clock;
    let read_node = read_node(cluster.clone(), name.clone(), left.clone(), clock);
    let nodes = nodes.map(move |node| {
        let facts = node.as_ref().map(|node| facts(node, &left, clock));
        seen.send_replace(node);
        facts
    });
    let deps = CordonDeps {
        nodes: nodes.boxed(),
        read_node,
        commands,
        driver_changes,
        sole_instance,
    };
    let options = CordonOptions {
        node: name,
        sla,
        uncordon_sla: UNCORDON_WITHIN,
        clock,
    };
    cordon::run(options, deps)
}

fn read_node(cluster: Cluster, name: String, left: LeftDrain, clock: Clock) -> ReadNode {
    Arc::new(move || {
        let (cluster, name, left) = (cluster.clone(), name.clone(), left.clone());
        async move {
            match cluster.node(&name).await {
                Ok(node) => node.as_ref().map(|node| facts(node, &left, clock)),
                Err(error) => {
                    tracing::warn!(%error, "the node could not be looked at; trying again");
                    None
                }
            }
        }
        .boxed()
    })
}

/// Of a drained node the condition says it. An uncordon that failed has left the rest.
fn has_to_undo(mark: &Checkpoint) -> bool {
    let is_left = mark.intent == Intent::Uncordon || (mark.only_pods.is_some() && mark.ended_well);
    is_left && !mark.is_under_way() && !mark.to_undo.is_empty()
}

fn facts(node: &Node, left: &LeftDrain, clock: Clock) -> NodeFacts {
    let resume_point = left
        .mark_so_far()
        .and_then(|mark| resume_point::of_cordon(&mark, clock));
    let has = |label: &str| node.labels.get(label).is_some_and(|value| value == "true");
    NodeFacts {
        uid: node.uid.as_str().to_owned(),
        drains_on_cordon: has(LABEL),
        undoes_on_uncordon: has(UNCORDON_LABEL),
        cordoned: node.unschedulable,
        own_cordon: node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon),
        drained: resume_point::is_marked_drained(node),
        tried: cordon::was_tried(node),
        to_undo: node.checkpoint.as_ref().is_some_and(has_to_undo),
        resume_point,
    }
}
