//! Observes whether the holder of a node's Lease is gone, without taking the Lease.

use tokio::time::Instant;

use super::expiry_tracker::{LeaseAvailability, LeaseExpiryTracker};
use super::node_leases::NodeLeases;

/// Observes one Lease.
pub(crate) struct LeaseObserver {
    leases: NodeLeases,
    state: LeaseExpiryTracker,
}

impl LeaseObserver {
    pub(crate) fn new(leases: NodeLeases) -> Self {
        let state = LeaseExpiryTracker::new(leases.own.clone(), None);
        Self { leases, state }
    }

    /// The Lease exists, and its holder is dead or has not renewed it for its duration. Without a Lease this is false: a
    /// process may drain without one.
    pub(crate) async fn is_abandoned(&mut self, node: &str) -> bool {
        match self.leases.cluster.lease(&self.leases.namespace, node).await {
            Ok(Some(lease)) => self.state.observe(&lease, Instant::now()) == LeaseAvailability::Free,
            Ok(None) => false,
            Err(error) => {
                tracing::debug!(node, %error, "the node's Lease could not be read");
                false
            }
        }
    }
}
