//! Future events in the order of time; among equal times the first inserted comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::timers::Timer;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Entry>,
    count: u64,
    /// Events for the engine come at multiples of so many milliseconds, so that several come at once; 0: whenever they come.
    grain: u64,
}

#[derive(Debug)]
struct Entry {
    at: Reverse<(u64, u64)>,
    // Boxed, as the heap moves entries.
    due: Box<Timer>,
}

impl Queue {
    pub(crate) const fn set_grain(&mut self, grain: u64) {
        self.grain = grain;
    }

    /// The next one is an event for the engine, and comes at this time.
    pub(crate) fn is_event_due(&self, now: u64) -> bool {
        let next = self.heap.peek();
        next.is_some_and(|entry| entry.at.0.0 <= now && is_event(&entry.due))
    }

    pub(crate) fn push(&mut self, at: u64, due: Timer) {
        let at = match self.grain {
            grain if grain > 0 && is_event(&due) => at.div_ceil(grain) * grain,
            _ => at,
        };
        self.count += 1;
        self.heap.push(Entry {
            at: Reverse((at, self.count)),
            due: Box::new(due),
        });
    }

    /// The time of the next event.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.at.0.0)
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, Timer)> {
        self.heap.pop().map(|entry| (entry.at.0.0, *entry.due))
    }
}

const fn is_event(due: &Timer) -> bool {
    matches!(due, Timer::Answer { .. } | Timer::Watch { .. })
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
