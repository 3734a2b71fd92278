//! How far the host's migration records are checked. Losing this costs requests, and nothing else.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The most busy servers to remember. The check continues when one of them has finished.
const BUSY: usize = 16;
/// The most unconfirmed resizes to remember by record; the others are counted.
const NAMED: usize = 8;

/// The state of a checked server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Only its record remains.
    Nothing,
    Busy,
    Unconfirmed,
}

/// Identifies a server by the id of its newest record.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Checked {
    /// All records up to this one are checked.
    #[serde(rename = "u", default)]
    pub(crate) to: u64,
    #[serde(rename = "b", default, skip_serializing_if = "BTreeSet::is_empty")]
    busy: BTreeSet<u64>,
    #[serde(rename = "c", default, skip_serializing_if = "BTreeSet::is_empty")]
    unconfirmed: BTreeSet<u64>,
    /// The number of unconfirmed resizes that are not in the list.
    #[serde(rename = "m", default)]
    pub(crate) more: usize,
}

impl Checked {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it can remember no more busy servers.
    pub(crate) fn is_full(&self) -> bool {
        self.busy.len() >= BUSY
    }

    /// Adds a result. `false`: only counted, the list is full.
    pub(crate) fn note(&mut self, record: u64, found: Found) -> bool {
        self.to = self.to.max(record);
        self.busy.remove(&record);
        self.unconfirmed.remove(&record);
        match found {
            Found::Nothing => {}
            Found::Busy => {
                self.busy.insert(record);
            }
            Found::Unconfirmed if self.unconfirmed.len() < NAMED => {
                self.unconfirmed.insert(record);
            }
            Found::Unconfirmed => {
                self.more += 1;
                return false;
            }
        }
        true
    }

    /// The records whose servers must be checked again: the busy and the unconfirmed ones.
    pub(crate) fn again(&self) -> Vec<u64> {
        self.busy.union(&self.unconfirmed).copied().collect()
    }

    /// Keeps only the records that still matter.
    pub(crate) fn keep(&mut self, still: impl Fn(u64) -> bool) {
        self.busy.retain(|record| still(*record));
        self.unconfirmed.retain(|record| still(*record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_busy_and_unconfirmed_servers_are_checked_again() {
        let mut checked = Checked::default();
        checked.note(3, Found::Nothing);
        checked.note(5, Found::Busy);
        checked.note(9, Found::Unconfirmed);
        assert_eq!((checked.to, checked.again()), (9, vec![5, 9]));
        checked.note(5, Found::Nothing);
        checked.note(9, Found::Unconfirmed);
        assert_eq!((checked.to, checked.again(), checked.more), (9, vec![9], 0));
        checked.keep(|record| record != 9);
        assert_eq!(checked.again(), [] as [u64; 0]);
    }

    #[test]
    fn it_stays_short_for_any_number_of_servers() {
        let mut checked = Checked::default();
        for record in 1..=1000 {
            checked.note(record, Found::Unconfirmed);
        }
        assert_eq!((checked.again().len(), checked.more), (NAMED, 1000 - NAMED));
        // A second check counts none twice.
        for record in checked.again() {
            checked.note(record, Found::Unconfirmed);
        }
        assert_eq!(checked.more, 1000 - NAMED);
        let mut record = 1000;
        while !checked.is_full() {
            record += 1;
            checked.note(record, Found::Busy);
        }
        assert_eq!(checked.again().len(), NAMED + BUSY);
    }
}
