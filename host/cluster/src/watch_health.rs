//! Watches that are broken just now. A watch heals itself; whoever is asked whether the driver can be relied on must
//! know that it has not yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Cluster;

/// Which watches are broken, by the number of the watch. Clones show the same.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchHealth(Arc<Mutex<BrokenWatches>>);

#[derive(Debug, Default)]
struct BrokenWatches {
    next: u64,
    broken: BTreeMap<u64, String>,
}

/// One watch's word. Dropped with the watch.
#[derive(Debug)]
pub(super) struct WatchStatus {
    number: u64,
    all: WatchHealth,
}

impl WatchHealth {
    /// For a watch that is about to begin.
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
    /// It is broken, or not any more.
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
    /// The watches that broke and could not be mended at once: what is watched and what went wrong.
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
