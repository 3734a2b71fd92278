//! What another process of ours has left on the node: read when it is needed, because whoever wrote it may have gone on
//! writing since this process began.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use scupper_engine::{Checkpoint, Node, Phase};
use tokio::time::sleep;

use crate::local;
use scupper_cluster::Cluster;
use scupper_triggers::{ResumePoint, cordon, slm};

/// A node that could not be read is read again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// The node as it is now; `None`: there is none. Waits for an API server that does not answer.
pub(crate) async fn node_now(cluster: &Cluster, name: &str) -> Option<Node> {
    loop {
        match cluster.node(name).await {
            Ok(node) => return node,
            Err(error) => tracing::warn!(%error, "the node could not be read; trying again"),
        }
        sleep(RETRY).await;
    }
}

/// How the SLM door looks what another process has left for it.
pub(crate) fn look_back(cluster: &Cluster, name: &str) -> slm::FindResumePoint {
    let (cluster, name) = (cluster.clone(), name.to_owned());
    Arc::new(move || {
        let (cluster, name) = (cluster.clone(), name.clone());
        async move {
            let node = node_now(&cluster, &name).await;
            node.and_then(|node| node.checkpoint).and_then(of_event)
        }
        .boxed()
    })
}

/// A drain that somebody runs in a terminal is not ours to end, and the cordon door looks after its own.
fn of_event(mark: Checkpoint) -> Option<ResumePoint> {
    let is_of_event = mark.trigger != local::TRIGGER && mark.trigger != cordon::TRIGGER;
    is_of_event.then(|| ResumePoint {
        intent: mark.intent(),
        deadline: None,
        finished: mark.phase == Phase::Finished,
        id: mark.id,
        name: mark.name,
    })
}
