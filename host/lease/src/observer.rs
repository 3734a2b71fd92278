//! Observes whether the holder of a node's Lease is gone, without taking the Lease.

use tokio::time::Instant;

use super::expiry_tracker::{LeaseAvailability, LeaseExpiryTracker};
use super::node_leases::NodeLeases;
use scupper_report::LeasedDrain;

/// Observes one Lease.
pub struct LeaseObserver {
    leases: NodeLeases,
    state: LeaseExpiryTracker,
}

impl LeaseObserver {
    /// Of one of these Leases.
    pub fn new(leases: NodeLeases) -> Self {
        let state = LeaseExpiryTracker::new(leases.own.clone(), None);
        Self { leases, state }
    }

    /// The drain that the Lease names, once no process holds the Lease any more; `None`: one may, or it cannot be read.
    pub async fn left_drain(&mut self, node: &str) -> Option<Option<LeasedDrain>> {
        let lease = self.leases.cluster.lease(&self.leases.namespace, node).await;
        let lease = lease.inspect_err(|error| {
            tracing::debug!(node, %error, "the node's Lease could not be read");
        });
        let Some(lease) = lease.ok()? else {
            return Some(None);
        };
        let is_free = self.state.observe(&lease, Instant::now()) == LeaseAvailability::Free;
        is_free.then(|| LeasedDrain::from_text(&lease.drain))
    }

    /// The Lease has a holder, and that is dead or has not renewed it for its duration. Without a Lease this is false: a
    /// process may drain without one.
    pub async fn is_abandoned(&mut self, node: &str) -> bool {
        match self.leases.cluster.lease(&self.leases.namespace, node).await {
            Ok(Some(lease)) if !lease.holder.is_empty() => {
                self.state.observe(&lease, Instant::now()) == LeaseAvailability::Free
            }
            Ok(_) => false,
            Err(error) => {
                tracing::debug!(node, %error, "the node's Lease could not be read");
                false
            }
        }
    }
}
