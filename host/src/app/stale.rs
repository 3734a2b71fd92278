//! Takes back that the node is drained once somebody has uncordoned it without a word to us: the watch shows it, the
//! report edge knows what is to be said, the cluster edge writes it.

use scupper_engine::Node;
use tokio::sync::watch;

use super::reporter::condition;
use crate::cluster::Cluster;
use crate::report::conditions_of_uncordoned;
use crate::triggers::Standing;

/// Begins to; ends when nobody shows the node any more.
pub(super) fn take_back(
    cluster: Cluster,
    standing: watch::Receiver<Standing>,
    mut nodes: watch::Receiver<Option<Node>>,
) {
    tokio::spawn(async move {
        while nodes.changed().await.is_ok() {
            let node = nodes.borrow_and_update().clone();
            // What a drain or an uncordon of ours leads to is told at its end.
            if matches!(*standing.borrow(), Standing::Working { .. }) {
                continue;
            }
            let Some(node) = node else { continue };
            let Some(changes) = conditions_of_uncordoned(&node) else {
                continue;
            };
            let conditions: Vec<_> = changes.iter().map(condition).collect();
            if let Err(error) = cluster.set_node_conditions(&node.name, &conditions).await {
                // The next change of the node, its heartbeat for one, brings us here again.
                tracing::warn!(node = node.name, %error, "could not take back that the node is drained");
            }
        }
    });
}
