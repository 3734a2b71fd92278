//! The drain or uncordon of another process. One that a command has begun, and whose process is gone, because its terminal
//! was closed or its machine is away, is continued by the same command. An uncordon undoes a drain first, and a drain replaces
//! an uncordon. What a driver has begun is not taken: its driver comes back. A drain whose process is alive is waited for by
//! the next one.

use std::time::Duration;

use scupper_engine::{Checkpoint, Intent, Trigger};
use tokio::time::sleep;

use super::{LocalOptions, RollBack, run};
use crate::occupancy::{LocalError, has_foreign_cordon};
use crate::{DriverError, NodeSelection};
use scupper_cluster::Cluster;
use scupper_lease::{HolderLiveness, LeaseReader, ObservedLease};

/// How often the Lease is read while its holder is silent.
const LOOK: Duration = Duration::from_secs(1);
/// Why a drain is undone.
const REASON: &str = "undone by scupper uncordon, because the process that drained is gone";

/// What another process does on a node.
pub(super) enum FoundDrain {
    /// Its process is gone.
    Abandoned(AbandonedDrain),
    /// It drains, and the drain of this command begins when that has ended: `cordon cordon-worker-1`.
    Ahead(String),
    /// It keeps this command from the node.
    InTheWay,
}

/// An abandoned drain or uncordon.
pub(super) struct AbandonedDrain {
    pub(super) intent: Intent,
    /// Its Lease, so that it need not be waited for again.
    pub(super) lease: Option<ObservedLease>,
}

/// What is known of the process of a drain or uncordon that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainingProcess {
    /// A command has begun it, and its process is gone.
    Gone,
    /// It runs, or it is a driver, which comes back.
    Alive,
    /// A command has begun it, and nothing shows whether its process runs.
    Unknown,
}

/// What is to be said of this abandoned drain or uncordon if an uncordon may not lift the cordon that is there.
pub fn keeping_cordon(node: &str, mark: &Checkpoint) -> String {
    match mark.intent {
        Intent::Drain => format!("to undo it: scupper cancel {node}"),
        Intent::Uncordon => "the node has been cordoned since".to_owned(),
    }
}

/// The drain or uncordon of a node on which another process seems to work.
pub(super) async fn find(
    cluster: &Cluster,
    options: &LocalOptions,
    node: &str,
) -> Result<FoundDrain, DriverError> {
    let is_said = options.take_over || options.roll_back.is_some() || options.drain.engine.machine_is_off;
    if is_said {
        return Ok(FoundDrain::InTheWay);
    }
    let found = cluster.node(node).await.map_err(DriverError::of_node(node))?;
    let may_lift_any = options.intent != Intent::Uncordon || options.any_cordon;
    let keeps_cordon = !may_lift_any && found.as_ref().is_some_and(has_foreign_cordon);
    let Some(mark) = found.and_then(|node| node.checkpoint) else {
        return Ok(FoundDrain::InTheWay);
    };
    let mut leases = LeaseReader::new(cluster.clone(), options.lease_namespace.clone(), options.clock);
    let does = match (options.intent, mark.intent) {
        _ if keeps_cordon => &keeping_cordon(node, &mark),
        (Intent::Uncordon, Intent::Drain) => "undoing it first",
        (Intent::Drain, Intent::Uncordon) => "draining the node instead",
        _ => "continuing it",
    };
    match draining_process(&mut leases, node, &mark, does).await {
        DrainingProcess::Gone if keeps_cordon => {
            let node = node.to_owned();
            Err(LocalError::ForeignCordon { node }.into())
        }
        DrainingProcess::Gone => Ok(FoundDrain::Abandoned(AbandonedDrain {
            intent: mark.intent,
            lease: leases.observed(node),
        })),
        DrainingProcess::Alive => {
            let are_drains = (options.intent, mark.intent) == (Intent::Drain, Intent::Drain);
            Ok(match are_drains && leases.is_held(node).await {
                true => FoundDrain::Ahead(format!("{} {}", mark.trigger, mark.name)),
                false => FoundDrain::InTheWay,
            })
        }
        DrainingProcess::Unknown => Err(LocalError::may_be_abandoned(node, mark).into()),
    }
}

/// What is known of the process of this drain or uncordon. Waits until its Lease shows that. `does`: what happens if its
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
    let works = match mark.intent {
        Intent::Drain => "drains it",
        Intent::Uncordon => "uncordons it",
    };
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
                        "node {node}: {holder} {works}, or is gone; waiting up to 30s for the node's Lease to show which"
                    );
                }
                sleep(LOOK).await;
            }
        }
    }
}

fn is_of_a_command(mark: &Checkpoint) -> bool {
    mark.is_under_way() && Trigger::of(&mark.trigger) == Trigger::Command
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
