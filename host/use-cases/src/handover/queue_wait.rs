//! How long a request waits behind another drain of its node, and whether a process carries out its own. It must not know how
//! what is ahead is found.

use std::time::Duration;

use scupper_engine::Trigger;
use scupper_lease::LeaseReader;
use scupper_report::LeasedDrain;
use tokio::time::Instant;

use super::HandOverEnd;

/// Whether the request still waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QueueState {
    /// What is ahead is carried out, or that may be.
    Waits,
    /// The request's own time is over.
    Late,
    /// No process carries out what is ahead, and none has taken it up within the time for a claim.
    Left,
}

impl QueueState {
    /// How a request that need not wait any longer ends, and why.
    pub(super) fn withdrawal(self, behind: &str, node: &str, driver: &str) -> Option<(HandOverEnd, String)> {
        match self {
            Self::Waits => None,
            Self::Late => {
                let why = format!("the deadline passed while it waited behind {behind}");
                Some((HandOverEnd::Deadline, why))
            }
            Self::Left => {
                let why = format!(
                    "{behind} has no process that carries it out (scupper status {node} shows it); is driver {driver} \
                     running on {node}?"
                );
                Some((HandOverEnd::NotTaken, why))
            }
        }
    }
}

/// One request behind another drain.
pub(super) struct QueueWait {
    leases: LeaseReader,
    /// How long a process may be away, as for a request that nothing is ahead of.
    patience: Duration,
    /// The end of the request's own time limit.
    until: Option<Instant>,
    /// Since when no process carries out what is ahead.
    left: Option<Instant>,
    /// It was said that the driver is gone.
    is_gone: bool,
}

impl QueueWait {
    pub(super) fn new(leases: LeaseReader, patience: Duration, limit: Option<Duration>) -> Self {
        Self {
            leases,
            patience,
            until: limit.map(|limit| Instant::now() + limit),
            left: None,
            is_gone: false,
        }
    }

    /// The driver of the request's own drain was not running when that was looked at last.
    pub(super) const fn is_driver_gone(&self) -> bool {
        self.is_gone
    }

    /// Reports if the driver of the request's own drain is gone, and if it is back. `has_lease`: the drain has a checkpoint on
    /// the node, so its process holds the node's Lease. `id`: of the drain.
    pub(super) async fn look_at_driver(&mut self, node: &str, id: &str, has_lease: bool) {
        // Without a Lease nothing shows whether a drain is planned that has left nothing on the node.
        let Some(is_gone) = self.leases.seems_abandoned(node, has_lease).await else {
            return;
        };
        if is_gone == self.is_gone {
            return;
        }
        if is_gone {
            self.is_gone = true;
            tracing::warn!(
                "node {node}: its driver is not running, so the drain stands still. It continues when the driver is back; what \
                 else to do: scupper status {node}"
            );
            return;
        }
        let Ok(Some(LeasedDrain {
            id: of,
            trigger,
            name,
            ..
        })) = self.leases.drain_of(node).await
        else {
            return;
        };
        self.is_gone = false;
        match Trigger::of(&trigger) {
            // It keeps the id of what it continues.
            Trigger::Command => tracing::warn!("node {node}: another command has taken over the drain"),
            _ if of == id => tracing::warn!("node {node}: its driver is back"),
            _ => tracing::warn!("node {node}: {trigger} {name} has taken over the drain"),
        }
    }

    /// No process carries out the drain of this id, or this account may not read who does.
    pub(super) async fn is_free_of(&self, node: &str, id: &str) -> bool {
        match self.leases.drain_of(node).await {
            Ok(held) => held.is_none_or(|drain| drain.id != id),
            Err(error) => error.is_forbidden(),
        }
    }

    /// `has_lease`: what is ahead has a checkpoint on the node, so the process that carries it out holds the node's Lease. To be
    /// called again and again: one look does not show that a process is gone.
    pub(super) async fn look(&mut self, node: &str, has_lease: bool) -> QueueState {
        let now = Instant::now();
        if self.until.is_some_and(|until| now >= until) {
            return QueueState::Late;
        }
        if !has_lease || !self.leases.is_abandoned(node).await {
            self.left = None;
            return QueueState::Waits;
        }
        let left = *self.left.get_or_insert(now);
        match now.duration_since(left) >= self.patience {
            true => QueueState::Left,
            false => QueueState::Waits,
        }
    }
}
