//! Tracks broken watches. A watch recovers by itself; the readiness check must know that it has not yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Cluster;

/// The broken watches, by the number of the watch. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchHealth(Arc<Mutex<BrokenWatches>>);

#[derive(Debug, Default)]
struct BrokenWatches {
    next: u64,
    broken: BTreeMap<u64, String>,
}

/// The status of one watch. Dropped with the watch.
#[derive(Debug)]
pub(super) struct WatchStatus {
    number: u64,
    all: WatchHealth,
}

impl WatchHealth {
    /// Creates the status of a new watch.
    pub(super) fn of_one(&self) -> WatchStatus {
        let mut broken_watches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        broken_watches.next += 1;
        WatchStatus {
            number: broken_watches.next,
            all: self.clone(),
        }
    }
}

impl WatchStatus {
    /// Sets whether the watch is broken, with the reason.
    pub(super) fn is(&self, broken: Option<String>) {
        let mut broken_watches = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        match broken {
            Some(words) => broken_watches.broken.insert(self.number, words),
            None => broken_watches.broken.remove(&self.number),
        };
    }
}

impl Drop for WatchStatus {
    fn drop(&mut self) {
        self.is(None);
    }
}

impl Cluster {
    /// Lists the watches that broke and did not recover at once, each with its error.
    pub fn broken_watches(&self) -> Vec<String> {
        let broken_watches = self
            .watch_health()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut words: Vec<_> = broken_watches.broken.values().cloned().collect();
        words.dedup();
        words
    }
}
