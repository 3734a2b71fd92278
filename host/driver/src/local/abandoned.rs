//! A drain that a command has begun, and whose process is gone: its terminal was closed, its machine is away. The same
//! command continues it, and an uncordon undoes it first. A driver's drain is not taken: its driver comes back.

use std::time::Duration;

use scupper_engine::{Checkpoint, Intent, Trigger};
use tokio::time::sleep;

use super::{LocalOptions, RollBack, run};
use crate::lease::{HolderLiveness, LeaseReader, ObservedLease};
use crate::occupancy::LocalError;
use crate::{DriverError, NodeSelection};
use scupper_cluster::Cluster;

/// How often the Lease is read while its holder is silent.
const LOOK: Duration = Duration::from_secs(1);
/// Why a drain is undone.
const REASON: &str = "undone by scupper uncordon, because the process that drained is gone";

/// An abandoned drain.
pub(super) struct AbandonedDrain {
    /// Its Lease, so that it need not be waited for again.
    pub(super) lease: Option<ObservedLease>,
}

/// What is known of the process of a drain that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainingProcess {
    /// A command has begun the drain, and its process is gone.
    Gone,
    /// It runs, or it is a driver, which comes back.
    Alive,
    /// A command has begun the drain, and nothing shows whether its process runs.
    Unknown,
}

/// The abandoned drain of a node on which another process seems to work, if it is one.
pub(super) async fn find(
    cluster: &Cluster,
    options: &LocalOptions,
    node: &str,
) -> Result<Option<AbandonedDrain>, DriverError> {
    let is_said = options.take_over || options.roll_back.is_some() || options.drain.engine.machine_is_off;
    if is_said {
        return Ok(None);
    }
    let found = cluster.node(node).await.map_err(DriverError::of_node(node))?;
    let Some(mark) = found.and_then(|node| node.checkpoint) else {
        return Ok(None);
    };
    let mut leases = LeaseReader::new(cluster.clone(), options.lease_namespace.clone(), options.clock);
    let does = match options.intent {
        Intent::Drain => "continuing it",
        Intent::Uncordon => "undoing it first",
    };
    match draining_process(&mut leases, node, &mark, does).await {
        DrainingProcess::Gone => Ok(Some(AbandonedDrain {
            lease: leases.observed(node),
        })),
        DrainingProcess::Alive => Ok(None),
        DrainingProcess::Unknown => Err(LocalError::may_be_abandoned(node, mark).into()),
    }
}

/// What is known of the process of this drain. Waits until its Lease shows that. `does`: what happens to a drain whose
/// process is gone.
pub async fn draining_process(
    leases: &mut LeaseReader,
    node: &str,
    mark: &Checkpoint,
    does: &str,
) -> DrainingProcess {
    if !is_of_a_command(mark) {
        return DrainingProcess::Alive;
    }
    let mut is_reported = false;
    loop {
        match leases.life_of_holder(node).await {
            HolderLiveness::Gone(holder) => {
                let (trigger, name) = (&mark.trigger, &mark.name);
                tracing::warn!(
                    "node {node}: {trigger} {name} was abandoned, because {holder} is gone; {does}"
                );
                return DrainingProcess::Gone;
            }
            HolderLiveness::Alive => return DrainingProcess::Alive,
            HolderLiveness::Unknown => return DrainingProcess::Unknown,
            HolderLiveness::Silent(holder) => {
                if !std::mem::replace(&mut is_reported, true) {
                    tracing::warn!(
                        "node {node}: {holder} drains it, or is gone; its Lease will tell within half a minute"
                    );
                }
                sleep(LOOK).await;
            }
        }
    }
}

fn is_of_a_command(mark: &Checkpoint) -> bool {
    let is_drain = mark.is_under_way() && mark.intent == Intent::Drain;
    is_drain && Trigger::of(&mark.trigger) == Trigger::Command
}

impl AbandonedDrain {
    /// Undoes it, as its process would have done when it was stopped.
    pub(super) async fn undo(self, options: &LocalOptions, node: &str) -> Result<(), DriverError> {
        let options = LocalOptions {
            nodes: NodeSelection::Named(vec![node.to_owned()]),
            intent: Intent::Drain,
            take_over: true,
            roll_back: Some(RollBack {
                reason: REASON.to_owned(),
                lease: self.lease,
            }),
            board: None,
            ..options.clone()
        };
        // A drain that undoes an abandoned one looks for no other.
        let undone = Box::pin(run(options, std::future::pending())).await?;
        undone.into_iter().try_for_each(|node| node.result.map(|_| ()))
    }
}
