//! After an uncordon: removes the taint that a drain with `--node-is-off` has set. A driver may write no taint, so the
//! command does this with the rights of its user.

use std::time::Duration;

use scupper_engine::{Checkpoint, Intent};
use tokio::time::sleep;

use super::nodes;
use crate::occupancy::{NodeOccupancy, OccupancyOverrides};
use crate::{DriverError, NodeSelection};
use scupper_cluster::{Cluster, ConnectOptions, Connection, WriteError};
use scupper_runner::out_of_service;

/// Conflicts after which a write is tried again.
const CONFLICTS: usize = 10;
/// How soon.
const AGAIN: Duration = Duration::from_millis(300);

/// Removes the taint from these nodes, which are uncordoned, unless a drain has begun there or somebody has cordoned them
/// since. Returns the nodes that had it.
pub async fn back_in_service(
    connection: Connection,
    selection: &NodeSelection,
    allowed: OccupancyOverrides,
    lease_namespace: &str,
) -> Result<Vec<String>, DriverError> {
    let connect = ConnectOptions {
        connection,
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(DriverError::Connect)?;
    let mut back = Vec::new();
    for name in nodes::resolve_or_recall(&cluster, selection, lease_namespace).await? {
        let found = cluster.node(&name).await.map_err(DriverError::of_node(&name))?;
        let mark = found.as_ref().and_then(|node| node.checkpoint.as_ref());
        let occupancy = NodeOccupancy::of(None, Intent::Uncordon, found.as_ref());
        let is_refused = occupancy.for_command(&name, Intent::Uncordon, allowed).is_err();
        if is_refused || mark.is_some_and(Checkpoint::is_under_way) {
            continue;
        }
        let is_marked = found.is_some_and(|node| node.is_out_of_service());
        if is_marked {
            let unmarked = remove_taint(&cluster, &name).await;
            if unmarked.map_err(DriverError::Taint)? {
                out_of_service::emit(&cluster, &name, &out_of_service::taint_removed()).await;
                back.push(name);
            }
        }
    }
    Ok(back)
}

/// Removes the taint whichever drain has set it. The node may change meanwhile, as one does whose kubelet has come back.
///
/// # Errors
/// As [`Cluster::unmark_out_of_service`]; a conflict only if there were several, one after another.
pub async fn remove_taint(cluster: &Cluster, node: &str) -> Result<bool, WriteError> {
    for _ in 0..CONFLICTS {
        match cluster.unmark_out_of_service(node, None).await {
            Err(WriteError::Conflict { .. }) => sleep(AGAIN).await,
            ended => return ended,
        }
    }
    cluster.unmark_out_of_service(node, None).await
}
