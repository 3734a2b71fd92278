//! How long a request waits behind another drain of its node. It must not know how what is ahead is found.

use std::time::Duration;

use scupper_lease::LeaseReader;
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
}

impl QueueWait {
    pub(super) fn new(leases: LeaseReader, patience: Duration, limit: Option<Duration>) -> Self {
        Self {
            leases,
            patience,
            until: limit.map(|limit| Instant::now() + limit),
            left: None,
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
