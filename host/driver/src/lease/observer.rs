//! Looks whether whoever holds a node's lease is gone, by the same observation as one who wants it, and takes nothing.

use tokio::time::Instant;

use super::node_leases::Seats;
use super::state::{Judge, Whose};

/// Observes one lease.
pub(crate) struct Onlooker {
    seats: Seats,
    judge: Judge,
}

impl Onlooker {
    pub(crate) fn new(seats: Seats) -> Self {
        let judge = Judge::new(seats.own.clone());
        Self { seats, judge }
    }

    /// There is a lease, and its holder is dead or silent for the lease's length. Where there is none, whoever is at the
    /// node may do without.
    pub(crate) async fn is_left(&mut self, node: &str) -> bool {
        match self.seats.cluster.lease(&self.seats.namespace, node).await {
            Ok(Some(lease)) => self.judge.judge(&lease, Instant::now()) == Whose::Free,
            Ok(None) => false,
            Err(error) => {
                tracing::debug!(node, %error, "the node's Lease could not be looked at");
                false
            }
        }
    }
}
