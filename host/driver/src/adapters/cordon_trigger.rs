//! The cluster as the cordon door sees it: the door asks, the cluster edge looks, and neither knows the other.

use std::sync::Arc;

use futures::{FutureExt as _, Stream, StreamExt as _};
use scupper_engine::Node;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::PluginOptions;
use crate::lease::NodeLeases;
use crate::manager::resume_point;
use crate::reporter::condition_cleanup;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_triggers::cordon::{self, CordonDeps, CordonOptions, LABEL, NodeFacts, ReadNode};
use scupper_triggers::{DrainCommand, DriverState};

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
        let seen = node.as_ref().map(|node| facts(node, clock));
        shown.send_replace(node);
        seen
    });
    let deps = CordonDeps {
        nodes: nodes.boxed(),
        read_node: read_node(cluster.clone(), name.clone(), clock),
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
