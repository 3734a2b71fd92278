//! A drain of several nodes cordons all of them before the first one begins, as `kubectl drain` does, so that no pod moves
//! from one of them to the next. The drain of each makes that cordon its own when it comes to it. What is left of these
//! cordons when a drain has ended or will not begin is lifted here.
//!
//! No Lease is taken: the write changes only a node that it has read without a cordon and without a drain.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use scupper_engine::{Answer, Checkpoint, Node, Phase, Task, Time, Trigger};

use tokio::time::sleep;

use super::run::new_id;
use scupper_cluster::{Cluster, ReadError};
use scupper_common::error::chain;

/// How many nodes are written at once.
const AT_ONCE: usize = 8;
/// How often a node is read and written that others change at the same moment, or while the API server does not answer.
const TRIES: usize = 5;
/// How long after a try that was not answered.
const RETRY: Duration = Duration::from_secs(1);

/// The nodes that a command has cordoned ahead of their drains.
#[derive(Clone, Debug)]
pub struct CordonsAhead {
    cluster: Cluster,
    /// In the mark of each.
    id: String,
}

/// What became of one node.
enum Tried {
    /// Cordoned, or given back.
    Done,
    /// There is nothing to do.
    Needless,
    /// Not for this reason.
    Failed(String),
}

impl CordonsAhead {
    /// Cordons those that take pods and on which no drain is under way. `say` is told of each that it has cordoned. One that
    /// cannot be cordoned is so when its drain begins, or that says why not.
    pub async fn make(cluster: &Cluster, now: Time, nodes: &[String], say: impl Fn(&str)) -> Self {
        let ahead = Self {
            cluster: cluster.clone(),
            id: new_id(now),
        };
        let tried: Vec<(&String, Tried)> = stream::iter(nodes)
            .map(async |node| (node, ahead.write(node, |found| ahead.cordon(found, now)).await))
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (node, tried) in tried {
            match tried {
                Tried::Done => say(node),
                Tried::Needless => {}
                Tried::Failed(why) => {
                    tracing::warn!(
                        "node {node} takes pods until its drain begins; it cannot be cordoned: {why}"
                    );
                }
            }
        }
        ahead
    }

    /// What a command that has ended left on this node, if that is what the mark says.
    pub fn found(cluster: &Cluster, mark: &Checkpoint) -> Option<Self> {
        mark.ahead.then(|| Self {
            cluster: cluster.clone(),
            id: mark.id.clone(),
        })
    }

    /// Lifts the cordon of a node whose drain has not come to its own.
    pub async fn lift(&self, node: &str) {
        match self.write(node, |found| self.uncordon(found)).await {
            Tried::Done => tracing::info!("node {node}: the cordon ahead of its drain is lifted"),
            Tried::Needless => {}
            Tried::Failed(why) => {
                tracing::warn!(
                    "node {node} is still cordoned ({why}); to lift that: scupper uncordon {node}"
                );
            }
        }
    }

    /// Reads the node and writes what is to be written, if anything.
    async fn write(&self, name: &str, change: impl Fn(&Node) -> Option<Task>) -> Tried {
        let mut why = String::new();
        for _ in 0..TRIES {
            let found = match self.cluster.node(name).await {
                Ok(Some(found)) => found,
                Ok(None) | Err(ReadError::NotFound { .. }) => return Tried::Needless,
                Err(error) => {
                    why = chain(&error);
                    sleep(RETRY).await;
                    continue;
                }
            };
            let Some(task) = change(&found) else {
                return Tried::Needless;
            };
            match self.cluster.perform(name, &task).await {
                Answer::Written { .. } => return Tried::Done,
                Answer::NodeGone => return Tried::Needless,
                Answer::Rejected { message } => return Tried::Failed(message),
                Answer::Forbidden { message } | Answer::Unavailable { message } => {
                    why = message;
                    sleep(RETRY).await;
                }
                _ => "the node changes all the time".clone_into(&mut why),
            }
        }
        Tried::Failed(why)
    }

    fn cordon(&self, node: &Node, now: Time) -> Option<Task> {
        let mark = node.checkpoint.as_ref();
        if node.unschedulable || mark.is_some_and(Checkpoint::is_under_way) {
            return None;
        }
        let checkpoint = Checkpoint {
            id: self.id.clone(),
            name: format!("drain-{}", node.name),
            trigger: Trigger::Command.name().to_owned(),
            phase: Phase::Finished,
            own_cordon: true,
            ahead: true,
            ..Checkpoint::blank(node.uid.clone(), now).keeping(mark)
        };
        Some(Task::Cordon {
            node: node.uid.clone(),
            checkpoint,
            version: node.resource_version.clone(),
        })
    }

    fn uncordon(&self, node: &Node) -> Option<Task> {
        let mark = node.checkpoint.as_ref()?;
        if !mark.ahead || mark.id != self.id {
            return None;
        }
        let left = Checkpoint {
            own_cordon: false,
            ahead: false,
            ..mark.clone()
        };
        let is_left = !left.to_undo.is_empty() || !left.raised.is_empty();
        let checkpoint = is_left.then_some(left);
        let node = node.clone();
        Some(match node.unschedulable {
            true => Task::Uncordon {
                node: node.uid,
                checkpoint,
                version: node.resource_version,
            },
            // Others have lifted it, and left the mark.
            false => match checkpoint {
                Some(checkpoint) => Task::Save {
                    node: node.uid,
                    checkpoint,
                },
                None => Task::Forget { node: node.uid },
            },
        })
    }
}
