//! Reports that the node is Ready again and still has the taint of a drain with `--node-is-off`. A driver may write no
//! taint, so it only says who can remove it.

use scupper_engine::Node;
use tokio::sync::watch;

use scupper_cluster::Cluster;
use scupper_runner::out_of_service::{emit, still_tainted};

/// Ends with the watch of the node.
pub(super) async fn run(cluster: Cluster, mut nodes: watch::Receiver<Option<Node>>) {
    let mut is_reported = false;
    loop {
        let node = nodes.borrow_and_update().clone();
        let said = node.as_ref().and_then(still_tainted);
        if let Some((node, said)) = node.zip(said.clone()).filter(|_| !is_reported) {
            tracing::warn!(node = node.name, "{}", said.note);
            emit(&cluster, &node.name, &said).await;
        }
        is_reported = said.is_some();
        if nodes.changed().await.is_err() {
            return;
        }
    }
}
