//! Plans the drains of several nodes before the first of them is cordoned. A node whose drain would be refused stays in
//! service until its turn, and the operator learns at the start what the last of twenty nodes needs.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use scupper_engine::{Outcome, Request};
use tokio::time::timeout;

use crate::runner::dry_run::dry_run;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_policy_reload::Session;

/// How many nodes are planned at once.
const AT_ONCE: usize = 4;
/// A plan that takes longer is made at the node's turn: the drains of the others begin.
const WITHIN: Duration = Duration::from_secs(10);

/// Returns the nodes whose drains can begin now, and those that have no plan in time. The log names each other node.
pub(super) async fn would_begin(
    cluster: &Cluster,
    session: &Session,
    clock: Clock,
    requests: Vec<Request>,
) -> Vec<String> {
    let plan = async |request: Request| {
        let node = request.node.clone();
        let watch = cluster.watch(&node);
        futures::pin_mut!(watch);
        let planned = timeout(WITHIN, dry_run(cluster, session, clock, request, &mut watch)).await;
        (node, planned)
    };
    let planned: Vec<_> = stream::iter(requests).map(plan).buffered(AT_ONCE).collect().await;
    let mut nodes = Vec::new();
    for (node, planned) in planned {
        match planned.map(|planned| planned.map(|dry_run| dry_run.result)) {
            Ok(Ok(Err(outcome))) if outcome != Outcome::Drained => {
                tracing::warn!(
                    "node {node} is not cordoned yet, because its drain could not begin now: {outcome}"
                );
            }
            Ok(Err(error)) => {
                tracing::warn!("{error}");
                nodes.push(node);
            }
            Ok(Ok(_)) | Err(_) => nodes.push(node),
        }
    }
    nodes
}
