//! Where a drain from the command line starts: whether another process drains the node, and whose its cordon is.

use std::time::Duration;

use scupper_engine::{Answer, Checkpoint, Intent, Node, PolicyInfo, Task, Trigger, Uid};
use tokio::time::sleep;

use super::LocalOptions;
use crate::DriverError;
use crate::occupancy::{LocalError, NodeOccupancy, OccupancyOverrides, has_foreign_cordon};
use scupper_cluster::{Cluster, KubeletState, ReadError};
use scupper_runner::last_known::{DrainEnd, LastKnown};
use scupper_runner::out_of_service;
use scupper_runner::pre_flight::RefusedSince;

/// A node that could not be read is read again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// The state of a node from which to start.
pub(super) struct NodeAtDrainStart {
    pub(super) node: String,
    /// Where another process left a drain that this one continues.
    pub(super) resume: Option<Checkpoint>,
    /// The drain that we have begun there is over.
    pub(super) ended: Option<DrainEnd>,
    /// The node as it was read.
    pub(super) seen: Option<Node>,
    /// The drain of another process that it waits for: `cordon cordon-worker-1`.
    pub(super) behind: Option<String>,
    /// The node whose foreign cordon must be made ours first.
    adopt: Option<Node>,
}

/// The drain that this process has begun on the node.
#[derive(Clone, Copy)]
pub(super) struct BegunDrain<'a> {
    pub(super) id: &'a str,
    pub(super) last_known: &'a LastKnown,
}

/// Reads the node, and fails if it must not be drained. `take_over`: what another process has begun there is continued.
pub(super) async fn read_start(
    cluster: &Cluster,
    options: &LocalOptions,
    take_over: bool,
    name: &str,
) -> Result<NodeAtDrainStart, DriverError> {
    let found = cluster.node(name).await.map_err(DriverError::of_node(name))?;
    let start = starting_point(options, take_over, name, None, found)?;
    start.check_kubelet(cluster, options).await?;
    Ok(start)
}

/// `own`: the drain that we have begun there.
fn starting_point(
    options: &LocalOptions,
    take_over: bool,
    name: &str,
    own: Option<BegunDrain<'_>>,
    found: Option<Node>,
) -> Result<NodeAtDrainStart, DriverError> {
    let allowed = OccupancyOverrides {
        take_over,
        node_is_off: options.drain.engine.machine_is_off,
        any_cordon: options.any_cordon,
        undoes: options.roll_back.is_some(),
    };
    let start = NodeAtDrainStart {
        ended: own.and_then(|own| own.last_known.end_on(own.id, found.as_ref())),
        ..NodeAtDrainStart::unread(name)
    };
    // Whatever is on the node now belongs to others.
    if start.ended.is_some() {
        return Ok(start);
    }
    let request = own.map(|own| (own.id, own.last_known.mark()));
    let occupancy = NodeOccupancy::of(request, options.intent, found.as_ref());
    let may_adopt = options.any_cordon && found.as_ref().is_some_and(has_foreign_cordon);
    Ok(match occupancy.for_command(name, options.intent, allowed)? {
        // Continued, it would keep the cordon that has come since.
        NodeOccupancy::Occupied(mark) if may_adopt && mark.intent == Intent::Uncordon => NodeAtDrainStart {
            adopt: found,
            ..start
        },
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
/// `is_held`: we have the Lease; otherwise it could not be taken.
pub(super) async fn look_again(
    cluster: &Cluster,
    (options, take_over): (&LocalOptions, bool),
    name: &str,
    own: Option<BegunDrain<'_>>,
    is_held: bool,
) -> Result<NodeAtDrainStart, DriverError> {
    let refused_since = RefusedSince::default();
    // A drain that has begun is not given up, half done, for a refusal that may pass.
    let limit = match own {
        Some(_) => options.drain.engine.forbidden_timeout,
        None => Duration::ZERO,
    };
    let found = loop {
        match cluster.node(name).await {
            Ok(found) => break found,
            Err(error) if refused_since.may_pass(&error, limit) => {
                tracing::warn!(%error, "the node could not be read; trying again");
            }
            Err(error) => return Err(DriverError::of_node(name)(error)),
        }
        sleep(RETRY).await;
    };
    let start = starting_point(options, take_over, name, own, found)?;
    if own.is_some() {
        return Ok(start);
    }
    while let Err(error) = start.check_kubelet(cluster, options).await {
        let DriverError::Node {
            source: ReadError::Unavailable { .. },
            ..
        } = error
        else {
            return Err(error);
        };
        tracing::warn!(%error, "the kubelet could not be looked at; trying again");
        sleep(RETRY).await;
    }
    // The user vouches for a command of their own, and a silent kubelet for the driver on its machine.
    let is_vouched = |mark: &&Checkpoint| {
        options.drain.engine.machine_is_off || Trigger::of(&mark.trigger) == Trigger::Command
    };
    let mark = start.seen.as_ref().and_then(|node| node.checkpoint.as_ref());
    let others = mark.filter(|mark| mark.is_under_way() && !is_held && !is_vouched(mark));
    match others {
        Some(mark) => Err(LocalError::unproven(name, mark).into()),
        None => Ok(start),
    }
}

impl NodeAtDrainStart {
    /// Only what the node is like after the drain ahead counts.
    pub(super) fn behind(node: &str, ahead: String) -> Self {
        Self {
            behind: Some(ahead),
            ..Self::unread(node)
        }
    }

    fn unread(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            resume: None,
            ended: None,
            seen: None,
            behind: None,
            adopt: None,
        }
    }

    /// Before a drain with `--node-is-off` continues or replaces another process's work: a planner that refuses cannot
    /// leave that as it is any more.
    async fn check_kubelet(&self, cluster: &Cluster, options: &LocalOptions) -> Result<(), DriverError> {
        let mark = self.seen.as_ref().and_then(|node| node.checkpoint.as_ref());
        let is_under_way = mark.is_some_and(Checkpoint::is_under_way);
        if !options.drain.engine.machine_is_off || !is_under_way {
            return Ok(());
        }
        let shown = cluster.kubelet(&self.node, None).await;
        match shown.map_err(DriverError::of_node(&self.node))? {
            KubeletState::Silent(_) => Ok(()),
            KubeletState::Alive(sign) => {
                let message = out_of_service::alive(&self.node, &sign);
                Err(LocalError::Alive { message }.into())
            }
        }
    }

    /// Makes a foreign cordon ours, so that the hooks run when it is lifted. What an earlier drain has left to undo stays known.
    /// An uncordon that lacks a policy is refused, and must leave the cordon to its owner.
    pub(super) async fn adopt(
        &self,
        cluster: &Cluster,
        policies: &[PolicyInfo],
        mark: impl FnOnce(Uid) -> Checkpoint,
    ) -> Result<(), LocalError> {
        let Some(node) = &self.adopt else { return Ok(()) };
        let checkpoint = mark(node.uid.clone()).keeping(node.checkpoint.as_ref());
        let is_absent = |name: &String| policies.iter().all(|policy| policy.name != *name);
        if checkpoint.to_undo.keys().any(is_absent) {
            return Ok(());
        }
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
