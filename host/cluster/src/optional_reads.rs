//! Refused reads that a drain can do without.
//!
//! An API server that has just restarted refuses requests for some seconds, so a refusal (401, 403) is retried before it
//! counts. One that fails in between may be restarting again. A driver that lacks a right for good waits once, not in each
//! of its drains.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long the refusal of a read that a drain can do without may be a hiccup. Until then the drain keeps what it knew, and
/// one that knows nothing waits.
pub const OPTIONAL_READ_PATIENCE: Duration = Duration::from_secs(10);

/// Since when the API server has refused each of these reads. Clones share the state.
#[derive(Clone, Debug)]
pub(super) struct OptionalReads {
    patience: Duration,
    refused: Arc<Mutex<BTreeMap<String, Instant>>>,
}

impl OptionalReads {
    /// `patience`: how long a refusal may be a hiccup.
    pub(super) fn new(patience: Duration) -> Self {
        let refused = Arc::default();
        Self { patience, refused }
    }

    /// The API server has refused the read once more. True if a later try may succeed.
    pub(super) fn may_pass(&self, what: &str) -> bool {
        let mut refused = self.refused();
        let since = refused.entry(what.to_owned()).or_insert_with(Instant::now);
        since.elapsed() < self.patience
    }

    /// The read failed otherwise. If the refusal does not count yet, what comes now is the start of another API server.
    pub(super) fn failed(&self, what: &str) {
        if let Some(since) = self.refused().get_mut(what)
            && since.elapsed() < self.patience
        {
            *since = Instant::now();
        }
    }

    /// The API server has answered the read.
    pub(super) fn succeeded(&self, what: &str) {
        self.refused().remove(what);
    }

    /// The API server has refused the read last.
    pub(super) fn is_refused(&self, what: &str) -> bool {
        self.refused().contains_key(what)
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refusal_counts_once_it_has_lasted_and_until_the_read_succeeds() {
        let reads = OptionalReads::new(OPTIONAL_READ_PATIENCE);
        assert!(reads.may_pass("budgets"));
        tokio::time::advance(OPTIONAL_READ_PATIENCE - Duration::from_millis(1)).await;
        assert!(reads.may_pass("budgets"));
        assert!(reads.may_pass("daemonsets"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!reads.may_pass("budgets"));
        assert!(reads.may_pass("daemonsets"));
        assert!(reads.is_refused("budgets"));
        reads.succeeded("budgets");
        assert!(!reads.is_refused("budgets"));
        assert!(reads.may_pass("budgets"));
    }

    #[tokio::test(start_paused = true)]
    async fn another_fault_begins_the_time_anew_unless_the_refusal_counts_already() {
        let reads = OptionalReads::new(OPTIONAL_READ_PATIENCE);
        reads.failed("budgets");
        assert!(!reads.is_refused("budgets"));
        assert!(reads.may_pass("budgets"));
        tokio::time::advance(OPTIONAL_READ_PATIENCE - Duration::from_millis(1)).await;
        reads.failed("budgets");
        tokio::time::advance(OPTIONAL_READ_PATIENCE - Duration::from_millis(1)).await;
        assert!(reads.may_pass("budgets"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!reads.may_pass("budgets"));
        reads.failed("budgets");
        assert!(!reads.may_pass("budgets"));
    }
}
