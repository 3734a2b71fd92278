//! Looks whether whoever holds a node's lease is gone, by the same observation as one who wants it, and takes nothing.

use tokio::time::Instant;

use super::node_leases::NodeLeases;
use super::state::{Availability, LeaseState};

/// Observes one lease.
pub(crate) struct LeaseObserver {
    leases: NodeLeases,
    state: LeaseState,
}

impl LeaseObserver {
    pub(crate) fn new(leases: NodeLeases) -> Self {
        let state = LeaseState::new(leases.own.clone());
        Self { leases, state }
    }

    /// There is a lease, and its holder is dead or silent for the lease's length. Where there is none, whoever is at the
    /// node may do without.
    pub(crate) async fn is_abandoned(&mut self, node: &str) -> bool {
        match self.leases.cluster.lease(&self.leases.namespace, node).await {
            Ok(Some(lease)) => self.state.observe(&lease, Instant::now()) == Availability::Free,
            Ok(None) => false,
            Err(error) => {
                tracing::debug!(node, %error, "the node's Lease could not be looked at");
                false
            }
        }
    }
}
