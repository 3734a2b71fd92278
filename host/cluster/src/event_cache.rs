//! Which Events were written of late, so that the same again is counted up on the one that is there.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// More than a few drains come to. What is forgotten is written as a new Event when it comes back.
const MOST: usize = 256;

/// What makes two Events the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventKey {
    /// The namespace, the name and the UID of what it is about.
    pub(super) about: [String; 3],
    /// What it says in words: how severe it is, why, what was done, and what else sets it apart.
    pub(super) words: [String; 4],
}

/// An Event that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CachedEvent {
    /// Its name in its namespace.
    pub(super) name: String,
    /// How often it has happened, as it says there.
    pub(super) count: u32,
}

/// The Events that were written, the latest of them.
#[derive(Debug, Default)]
pub(super) struct EventCache(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    writes: u64,
    known: BTreeMap<EventKey, (u64, CachedEvent)>,
}

impl EventCache {
    /// The same one, if it was written.
    pub(super) fn find(&self, same: &EventKey) -> Option<CachedEvent> {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.known.get(same).map(|(_, written)| written.clone())
    }

    /// It stands there as this.
    pub(super) fn remember(&self, same: EventKey, written: CachedEvent) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.writes += 1;
        let number = latest.writes;
        latest.known.insert(same, (number, written));
        if latest.known.len() > MOST {
            let oldest = latest.known.iter().min_by_key(|(_, (number, _))| *number);
            if let Some(oldest) = oldest.map(|(same, _)| same.clone()) {
                latest.known.remove(&oldest);
            }
        }
    }

    /// It is not there any more.
    pub(super) fn forget(&self, same: &EventKey) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.known.remove(same);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(number: usize) -> EventKey {
        EventKey {
            about: [String::new(), format!("node-{number}"), String::new()],
            words: <[String; 4]>::default(),
        }
    }

    #[test]
    fn the_latest_are_known_and_their_number_is_bounded() {
        let counted = EventCache::default();
        let written = |count| CachedEvent {
            name: "x".to_owned(),
            count,
        };
        for number in 0..=MOST {
            // The first comes back again and again.
            counted.remember(same(0), written(2));
            counted.remember(same(number), written(1));
        }
        assert!(counted.find(&same(0)).is_some());
        assert_eq!(counted.find(&same(1)), None);
        assert_eq!(counted.find(&same(2)), Some(written(1)));
        counted.forget(&same(2));
        assert_eq!(counted.find(&same(2)), None);
    }
}
