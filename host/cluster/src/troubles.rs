//! Watches that are broken just now. A watch heals itself; whoever is asked whether the driver can be relied on must
//! know that it has not yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Cluster;

/// Which watches are broken, by the number of the watch. Clones show the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Troubles(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    next: u64,
    broken: BTreeMap<u64, String>,
}

/// One watch's word. Dropped with the watch.
#[derive(Debug)]
pub(super) struct Trouble {
    number: u64,
    all: Troubles,
}

impl Troubles {
    /// For a watch that is about to begin.
    pub(super) fn of_one(&self) -> Trouble {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.next += 1;
        Trouble {
            number: told.next,
            all: self.clone(),
        }
    }
}

impl Trouble {
    /// It is broken, or not any more.
    pub(super) fn is(&self, broken: Option<String>) {
        let mut told = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        match broken {
            Some(words) => told.broken.insert(self.number, words),
            None => told.broken.remove(&self.number),
        };
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        self.is(None);
    }
}

impl Cluster {
    /// The watches that broke and could not be mended at once: what is watched and what went wrong.
    pub fn broken_watches(&self) -> Vec<String> {
        let told = self.troubles().0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut words: Vec<_> = told.broken.values().cloned().collect();
        words.dedup();
        words
    }
}
