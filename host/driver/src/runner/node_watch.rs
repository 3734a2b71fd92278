//! Watches the driver's own node once and shares the result: triggers receive every change, a drain the newest state.

use futures::{Stream, StreamExt as _};
use scupper_engine::{Event, Node};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_stream::wrappers::{UnboundedReceiverStream, WatchStream};

use scupper_cluster::Cluster;

/// The newest state of the node. `None`: not read yet; `Some(None)`: the node does not exist.
#[derive(Clone)]
pub(crate) struct LatestNode(watch::Receiver<Option<Option<Node>>>);

/// Keeps the watch running; dropping it stops the watch.
pub(crate) struct NodeWatchGuard {
    pub(crate) node: LatestNode,
    pub(crate) _task: JoinSet<()>,
}

/// Starts the watch. The stream yields every change.
pub(crate) fn watch_node(
    cluster: &Cluster,
    name: &str,
) -> (
    NodeWatchGuard,
    impl Stream<Item = Option<Node>> + Send + Unpin + use<>,
) {
    let (newest, node) = watch::channel(None);
    let (each, changes) = mpsc::unbounded_channel();
    let watched = cluster.node_changes(name);
    let mut task = JoinSet::new();
    task.spawn(async move {
        futures::pin_mut!(watched);
        while let Some(node) = watched.next().await {
            newest.send_replace(Some(node.clone()));
            // A trigger may have ended while a drain still runs.
            each.send(node).unwrap_or_default();
        }
    });
    let node_watch = NodeWatchGuard {
        node: LatestNode(node),
        _task: task,
    };
    (node_watch, UnboundedReceiverStream::new(changes))
}

impl LatestNode {
    /// As it was seen last: not yet, not there, or this.
    pub(crate) fn newest(&self) -> Option<Option<Node>> {
        self.0.borrow().clone()
    }

    /// The node as it is, and as it becomes.
    pub(crate) fn events(&self) -> impl Stream<Item = Event> + Send + Unpin + use<> {
        WatchStream::new(self.0.clone()).filter_map(|node| std::future::ready(node.map(Event::Node)))
    }
}
