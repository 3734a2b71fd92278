//! Where a drain from the command line starts: whether another process drains the node, and whose its cordon is.

use std::time::Duration;

use scupper_engine::{Answer, Checkpoint, Intent, Node, Phase, Task, Trigger};

use tokio::time::sleep;

use super::{LocalError, LocalOptions};
use crate::DriverError;
use scupper_cluster::{Cluster, ReadError};

/// A node that could not be read is read again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// The state of a node from which to start.
pub(super) struct StartingPoint {
    pub(super) node: String,
    /// Where another process left a drain that this one continues.
    pub(super) resume: Option<Checkpoint>,
    /// The node as it was read.
    pub(super) seen: Option<Node>,
    /// The node whose foreign cordon must be made ours first.
    adopt: Option<Node>,
}

/// Reads the node, and fails if it must not be drained.
pub(super) async fn look(
    cluster: &Cluster,
    options: &LocalOptions,
    name: &str,
) -> Result<StartingPoint, DriverError> {
    let found = cluster.node(name).await.map_err(DriverError::of_node(name))?;
    starting_point(options, name, found)
}

fn starting_point(
    options: &LocalOptions,
    name: &str,
    found: Option<Node>,
) -> Result<StartingPoint, DriverError> {
    let mut start = StartingPoint {
        node: name.to_owned(),
        resume: None,
        seen: found.clone(),
        adopt: None,
    };
    // The drain itself reports a deleted node.
    let Some(node) = found else {
        return Ok(start);
    };
    let mark = node.checkpoint.clone();
    let is_ours = mark.as_ref().is_some_and(|mark| mark.own_cordon);
    if let Some(mark) = mark.filter(|mark| mark.phase != Phase::Finished) {
        let same = Trigger::of(&mark.trigger) == Trigger::Command && mark.intent() == options.intent;
        if !(options.take_over && same) {
            return Err(LocalError::busy(name, mark).into());
        }
        start.resume = Some(mark);
    } else if options.intent == Intent::Uncordon && node.unschedulable && !is_ours {
        if !options.any_cordon {
            return Err(LocalError::ForeignCordon {
                node: name.to_owned(),
            }
            .into());
        }
        // The node is written before the engine starts, so it is read again.
        start.seen = None;
        start.adopt = Some(node);
    }
    Ok(start)
}

/// Reads the node once the Lease is ours, because only that state counts. `own`: the drain that we have begun there.
pub(super) async fn look_again(
    cluster: &Cluster,
    options: &LocalOptions,
    name: &str,
    own: Option<&str>,
) -> Result<StartingPoint, DriverError> {
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
    let mark = found.as_ref().and_then(|node| node.checkpoint.clone());
    match mark.filter(|mark| own == Some(mark.id.as_str())) {
        Some(mark) => Ok(StartingPoint {
            node: name.to_owned(),
            resume: Some(mark),
            seen: found,
            adopt: None,
        }),
        None => starting_point(options, name, found),
    }
}

impl StartingPoint {
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
