//! Where a drain from the command line starts: whether another process drains the node, and whose its cordon is.

use std::time::Duration;

use scupper_engine::{Answer, Checkpoint, Node, Phase, Task};
use tokio::time::sleep;

use super::LocalOptions;
use crate::DriverError;
use crate::occupancy::{LocalError, NodeOccupancy, OccupancyOverrides};
use scupper_cluster::{Cluster, ReadError};

/// A node that could not be read is read again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// The state of a node from which to start.
pub(super) struct NodeAtDrainStart {
    pub(super) node: String,
    /// Where another process left a drain that this one continues.
    pub(super) resume: Option<Checkpoint>,
    /// The node as it was read.
    pub(super) seen: Option<Node>,
    /// The node whose foreign cordon must be made ours first.
    adopt: Option<Node>,
}

/// Reads the node, and fails if it must not be drained.
pub(super) async fn read_start(
    cluster: &Cluster,
    options: &LocalOptions,
    name: &str,
) -> Result<NodeAtDrainStart, DriverError> {
    let found = cluster.node(name).await.map_err(DriverError::of_node(name))?;
    starting_point(options, name, None, found)
}

/// `own`: the drain that we have begun there.
fn starting_point(
    options: &LocalOptions,
    name: &str,
    own: Option<&str>,
    found: Option<Node>,
) -> Result<NodeAtDrainStart, DriverError> {
    let allowed = OccupancyOverrides {
        take_over: options.take_over,
        any_cordon: options.any_cordon,
    };
    let occupancy = NodeOccupancy::of(own, options.intent, found.as_ref());
    let start = NodeAtDrainStart {
        node: name.to_owned(),
        resume: None,
        seen: None,
        adopt: None,
    };
    Ok(match occupancy.for_command(name, options.intent, allowed)? {
        NodeOccupancy::Own(mark) | NodeOccupancy::Occupied(mark) => NodeAtDrainStart {
            resume: Some(mark),
            seen: found,
            ..start
        },
        // The node is written before the engine starts, so it is read again.
        NodeOccupancy::ForeignCordon => NodeAtDrainStart {
            adopt: found,
            ..start
        },
        NodeOccupancy::Free | NodeOccupancy::Claimed(_) => NodeAtDrainStart { seen: found, ..start },
    })
}

/// Reads the node once the Lease is ours, because only that state counts. `own`: the drain that we have begun there.
pub(super) async fn look_again(
    cluster: &Cluster,
    options: &LocalOptions,
    name: &str,
    own: Option<&str>,
) -> Result<NodeAtDrainStart, DriverError> {
    let found = loop {
        match cluster.node(name).await {
            Ok(found) => break found,
            Err(error @ ReadError::Unavailable { .. }) => {
                tracing::warn!(%error, "the node could not be read; trying again");
            }
            Err(error) => return Err(DriverError::of_node(name)(error)),
        }
        sleep(RETRY).await;
    };
    starting_point(options, name, own, found)
}

impl NodeAtDrainStart {
    /// Makes a foreign cordon ours, so that the hooks run when it is lifted.
    pub(super) async fn adopt(
        &self,
        cluster: &Cluster,
        mark: impl FnOnce() -> Checkpoint,
    ) -> Result<(), LocalError> {
        let Some(node) = &self.adopt else { return Ok(()) };
        let checkpoint = Checkpoint {
            node: Some(node.uid.clone()),
            phase: Phase::Finished,
            own_cordon: true,
            ..mark()
        };
        let save = Task::Save {
            node: node.uid.clone(),
            checkpoint,
        };
        let message = match cluster.perform(&self.node, &save).await {
            Answer::Written { .. } => return Ok(()),
            Answer::Unavailable { message }
            | Answer::Forbidden { message }
            | Answer::Rejected { message } => message,
            _ => "the node has changed meanwhile".to_owned(),
        };
        Err(LocalError::Adopt {
            node: self.node.clone(),
            message,
        })
    }
}
