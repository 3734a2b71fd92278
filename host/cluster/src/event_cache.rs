//! Remembers recently written Events, so that a repetition increases the count of the existing one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// More than a few drains write. A forgotten Event that recurs is written as a new one.
const MOST: usize = 256;

/// The fields in which two equal Events agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventKey {
    /// Namespace, name and UID of the regarded object.
    pub(super) about: [String; 3],
    /// Severity, reason, action, and any further distinction.
    pub(super) words: [String; 4],
}

/// A written Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CachedEvent {
    /// Its name in its namespace.
    pub(super) name: String,
    /// Its count as written.
    pub(super) count: u32,
}

/// The most recently written Events.
#[derive(Debug, Default)]
pub(super) struct EventCache(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    writes: u64,
    known: BTreeMap<EventKey, (u64, CachedEvent)>,
}

impl EventCache {
    /// Returns the equal Event, if one was written.
    pub(super) fn find(&self, same: &EventKey) -> Option<CachedEvent> {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.known.get(same).map(|(_, written)| written.clone())
    }

    /// Remembers an Event as written.
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

    /// Forgets an Event that no longer exists.
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
            // The first key recurs.
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
