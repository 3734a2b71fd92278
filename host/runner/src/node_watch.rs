//! Watches the driver's own node once and shares the result: triggers receive every change, a drain the newest state.

use futures::{Stream, StreamExt as _};
use scupper_engine::{Event, Node};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{UnboundedReceiverStream, WatchStream};

use scupper_cluster::Cluster;

/// The newest state of the node. `None`: not read yet; `Some(None)`: the node does not exist.
#[derive(Clone)]
pub struct LatestNode(watch::Receiver<Option<Option<Node>>>);

/// The watch, which must run for this: the newest state, and a stream of every change.
pub fn watch_node(
    cluster: &Cluster,
    name: &str,
) -> (
    impl Future<Output = ()> + Send + use<>,
    LatestNode,
    impl Stream<Item = Option<Node>> + Send + Unpin + use<>,
) {
    let (newest, node) = watch::channel(None);
    let (each, changes) = mpsc::unbounded_channel();
    let watched = cluster.node_changes(name);
    let watching = async move {
        futures::pin_mut!(watched);
        while let Some(node) = watched.next().await {
            newest.send_replace(Some(node.clone()));
            // A trigger may have ended while a drain still runs.
            each.send(node).unwrap_or_default();
        }
    };
    (watching, LatestNode(node), UnboundedReceiverStream::new(changes))
}

impl LatestNode {
    /// As it was seen last: not yet, not there, or this.
    pub fn newest(&self) -> Option<Option<Node>> {
        self.0.borrow().clone()
    }

    /// The node as it is, and as it becomes.
    pub fn events(&self) -> impl Stream<Item = Event> + Send + Unpin + use<> {
        WatchStream::new(self.0.clone()).filter_map(|node| std::future::ready(node.map(Event::Node)))
    }
}
