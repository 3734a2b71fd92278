//! The cordon trigger's access to the node, by means of the cluster edge.

use std::sync::Arc;

use futures::{FutureExt as _, Stream, StreamExt as _};
use scupper_engine::Node;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::KubeletPluginOptions;
use crate::manager::resume_point;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_triggers::cordon::{self, CordonDeps, CordonOptions, LABEL, NodeFacts, ReadNode};
use scupper_triggers::{DrainCommand, DriverState};

/// How long an uncordon may take, as for a LifecycleEvent.
const UNCORDON_WITHIN: std::time::Duration = std::time::Duration::from_secs(5 * 60);

/// What the trigger reads and where its commands go.
pub(crate) struct CordonTriggerDeps<N> {
    pub(crate) nodes: N,
    pub(crate) commands: mpsc::Sender<DrainCommand>,
    pub(crate) driver_state: watch::Receiver<DriverState>,
    pub(crate) sole_instance: watch::Receiver<bool>,
    /// Receives each state of the node that the trigger sees.
    pub(crate) seen: watch::Sender<Option<Node>>,
}

/// Starts the trigger. It ends with the driver.
pub(crate) fn start<N>(
    cluster: &Cluster,
    options: &KubeletPluginOptions,
    deps: CordonTriggerDeps<N>,
) -> JoinHandle<()>
where
    N: Stream<Item = Option<Node>> + Send + Unpin + 'static,
{
    let CordonTriggerDeps {
        nodes,
        commands,
        driver_state,
        sole_instance,
        seen,
    } = deps;
    let name = options.node_name.clone();
    let clock = options.clock;
    let nodes = nodes.map(move |node| {
        let facts = node.as_ref().map(|node| facts(node, clock));
        seen.send_replace(node);
        facts
    });
    let deps = CordonDeps {
        nodes: nodes.boxed(),
        read_node: read_node(cluster.clone(), name.clone(), clock),
        commands,
        driver_state,
        sole_instance,
    };
    let options = CordonOptions {
        node: name,
        sla: options.sla,
        uncordon_sla: UNCORDON_WITHIN,
        clock,
    };
    tokio::spawn(cordon::run(options, deps))
}

fn read_node(cluster: Cluster, name: String, clock: Clock) -> ReadNode {
    Arc::new(move || {
        let (cluster, name) = (cluster.clone(), name.clone());
        async move {
            match cluster.node(&name).await {
                Ok(node) => node.as_ref().map(|node| facts(node, clock)),
                Err(error) => {
                    tracing::warn!(%error, "the node could not be looked at; trying again");
                    None
                }
            }
        }
        .boxed()
    })
}

fn facts(node: &Node, clock: Clock) -> NodeFacts {
    NodeFacts {
        uid: node.uid.0.clone(),
        labelled: node.labels.get(LABEL).is_some_and(|value| value == "true"),
        cordoned: node.unschedulable,
        own_cordon: node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon),
        drained: resume_point::is_marked_drained(node),
        resume_point: resume_point::of_cordon(node, clock),
    }
}
