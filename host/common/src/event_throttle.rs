//! Limits repeated Events: publishes the first occurrence and the first repetition at once, later repetitions only at
//! intervals. Each published Event contains the number of occurrences and the time of the last one.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::Time;

/// Minimum time between two publications of a repeated Event.
const EVERY: Duration = Duration::from_secs(300);

/// The occurrences since the last publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Number of occurrences, at least 1.
    pub times: u32,
    /// Time of the last occurrence.
    pub last: Time,
}

/// Counts occurrences by a key that identifies repetitions.
#[derive(Debug)]
pub struct EventThrottle<K, E>(BTreeMap<K, ThrottledEvent<E>>);

#[derive(Debug)]
struct ThrottledEvent<E> {
    event: E,
    /// Occurrences since the last publication.
    times: u32,
    last: Time,
    /// Number of publications; below, the time of the last one.
    published: u32,
    published_at: Time,
}

impl<K, E> Default for EventThrottle<K, E> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone, E: Clone> EventThrottle<K, E> {
    /// Records an occurrence.
    pub fn record(&mut self, now: Time, key: K, event: E) {
        let throttled = self.0.entry(key).or_insert_with(|| ThrottledEvent {
            event: event.clone(),
            times: 0,
            last: now,
            published: 0,
            published_at: now,
        });
        throttled.event = event;
        throttled.times = throttled.times.saturating_add(1);
        throttled.last = now;
    }

    /// The Events that are due now.
    pub fn due(&mut self, now: Time) -> Vec<(K, E, Repeated)> {
        let due = self.0.iter_mut().filter_map(|(key, throttled)| {
            let repeated = throttled.due(now)?;
            Some((key.clone(), throttled.event.clone(), repeated))
        });
        due.collect()
    }

    /// Whether an occurrence of this key was recorded before.
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// The number of keys.
    #[expect(clippy::len_without_is_empty, reason = "no caller needs it")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<E> ThrottledEvent<E> {
    fn due(&mut self, now: Time) -> Option<Repeated> {
        let is_news = self.published < 2 || now.since(self.published_at) >= EVERY;
        if self.times == 0 || !is_news {
            return None;
        }
        self.published = self.published.saturating_add(1);
        self.published_at = now;
        Some(Repeated {
            times: std::mem::take(&mut self.times),
            last: self.last,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn event(note: &str) -> String {
        note.to_owned()
    }

    #[test]
    fn a_recurrence_is_reported_at_once_and_later_ones_are_batched() {
        let mut throttle = EventThrottle::default();
        let mut published = Vec::new();
        for second in 0..1000 {
            if second % 10 == 0 {
                throttle.record(at(second), "a", event("n"));
            }
            for (key, _, repeated) in throttle.due(at(second)) {
                published.push((second, key, repeated.times));
            }
        }
        assert_eq!(
            published,
            [
                (0, "a", 1),
                (10, "a", 1),
                (310, "a", 30),
                (610, "a", 30),
                (910, "a", 30)
            ]
        );
        // After a long pause it is published at once again.
        throttle.record(at(5000), "a", event("n"));
        let published = throttle.due(at(5001));
        let (_, _, repeated) = published.first().unwrap();
        assert_eq!(
            (repeated.times, repeated.last),
            (9, at(5000)),
            "eight were still to be reported"
        );
    }

    #[test]
    fn each_event_has_its_own_count_and_the_latest_text() {
        let mut throttle = EventThrottle::default();
        throttle.record(at(0), "a", event("1"));
        throttle.record(at(0), "b", event("1"));
        assert_eq!(throttle.due(at(0)).len(), 2);
        assert_eq!(throttle.due(at(900)), []);
        throttle.record(at(901), "b", event("2"));
        let once = Repeated {
            times: 1,
            last: at(901),
        };
        assert_eq!(throttle.due(at(902)), [("b", event("2"), once)]);
    }
}
