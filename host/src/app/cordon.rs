//! The cluster as the cordon door sees it: the door asks, the cluster edge looks, and neither knows the other.

use std::sync::Arc;

use futures::{FutureExt as _, Stream, StreamExt as _};
use scupper_engine::{Checkpoint, Node, Phase};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::lease::Seats;
use super::{PluginOptions, stale};
use crate::cluster::Cluster;
use crate::triggers::cordon::{self, CordonOptions, CordonWires, LABEL, Left, Look, NodeView, TRIGGER};
use crate::triggers::{Demand, Standing};

/// How long an uncordon may take, as for a LifecycleEvent.
const UNCORDON_WITHIN: std::time::Duration = std::time::Duration::from_secs(5 * 60);

/// What the door is connected with.
pub(super) struct Wires<N> {
    pub(super) nodes: N,
    pub(super) demands: mpsc::Sender<Demand>,
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) alone: watch::Receiver<bool>,
    pub(super) left: Option<Left>,
    pub(super) seats: Seats,
}

/// Opens the door. It closes with the rest of the driver.
pub(super) fn open<N>(cluster: &Cluster, options: &PluginOptions, wires: Wires<N>) -> JoinHandle<()>
where
    N: Stream<Item = Option<Node>> + Send + Unpin + 'static,
{
    let Wires {
        nodes,
        demands,
        standing,
        alone,
        left,
        seats,
    } = wires;
    let name = options.node_name.clone();
    let (shown, seen) = watch::channel(None);
    stale::take_back(seats, standing.clone(), seen);
    let nodes = nodes.map(move |node| {
        let seen = node.as_ref().map(view);
        shown.send_replace(node);
        seen
    });
    let wires = CordonWires {
        nodes: nodes.boxed(),
        look: look(cluster.clone(), name.clone()),
        demands,
        standing,
        alone,
        left,
    };
    let options = CordonOptions {
        node: name,
        sla: options.sla,
        uncordon_sla: UNCORDON_WITHIN,
        clock: options.clock,
    };
    tokio::spawn(cordon::run(options, wires))
}

/// What a former process was at, if it was for this door.
pub(super) fn left(checkpoint: &Checkpoint) -> Option<Left> {
    let is_ours = checkpoint.trigger == TRIGGER && checkpoint.phase != Phase::Finished;
    is_ours.then(|| Left {
        id: checkpoint.id.clone(),
        name: checkpoint.name.clone(),
        intent: checkpoint.intent(),
        deadline: checkpoint.deadline,
    })
}

fn look(cluster: Cluster, name: String) -> Look {
    Arc::new(move || {
        let (cluster, name) = (cluster.clone(), name.clone());
        async move {
            match cluster.node(&name).await {
                Ok(node) => node.as_ref().map(view),
                Err(error) => {
                    tracing::warn!(%error, "the node could not be looked at; trying again");
                    None
                }
            }
        }
        .boxed()
    })
}

fn view(node: &Node) -> NodeView {
    let is_drained = |it: &scupper_engine::Condition| it.kind == "Drained" && it.status == "True";
    NodeView {
        uid: node.uid.0.clone(),
        labelled: node.labels.get(LABEL).is_some_and(|value| value == "true"),
        cordoned: node.unschedulable,
        own_cordon: node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon),
        drained: node.conditions.iter().any(is_drained),
    }
}
