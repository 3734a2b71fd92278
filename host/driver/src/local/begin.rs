//! What is found on a node before anything is begun there: whether another process is at it, and whose its cordon is.

use std::time::Duration;

use scupper_engine::{Answer, Checkpoint, Intent, Node, Phase, Task, Trigger};

use tokio::time::sleep;

use super::{LocalError, LocalOptions};
use crate::DriverError;
use scupper_cluster::{Cluster, ReadError};

/// A node that could not be read is read again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// A node to be dealt with.
pub(super) struct StartingPoint {
    pub(super) node: String,
    /// Where another process has left it.
    pub(super) resume: Option<Checkpoint>,
    /// The node as it was looked at.
    pub(super) seen: Option<Node>,
    /// Its cordon is to be made ours first.
    adopt: Option<Node>,
}

/// Looks at a node, and says why it cannot be begun.
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
    // A node that has gone meanwhile is told by the drain itself.
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
        // It is written to before the drive begins.
        start.seen = None;
        start.adopt = Some(node);
    }
    Ok(start)
}

/// Looks at a node once the lease is ours: what stands there now is what counts. `own`: what we had begun there.
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
    /// Makes somebody else's cordon ours, so that the hooks run around its lifting as they do around ours.
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
