//! How far the host's records of migrations are checked. Losing it costs requests, and nothing else.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// So many busy servers are remembered; the check goes on when one of them is through.
const BUSY: usize = 16;
/// So many unconfirmed resizes are remembered by name; the others are counted.
const NAMED: usize = 8;

/// What a look at a server found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its record is all there is left of it.
    Nothing,
    Busy,
    Unconfirmed,
}

/// A server stands under the id of its newest record.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Checked {
    /// All up to this one.
    #[serde(rename = "u", default)]
    pub(crate) to: u64,
    #[serde(rename = "b", default, skip_serializing_if = "BTreeSet::is_empty")]
    busy: BTreeSet<u64>,
    #[serde(rename = "c", default, skip_serializing_if = "BTreeSet::is_empty")]
    unconfirmed: BTreeSet<u64>,
    /// Unconfirmed ones beyond those that are named.
    #[serde(rename = "m", default)]
    pub(crate) more: usize,
}

impl Checked {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// It can remember no more that is waited for.
    pub(crate) fn is_full(&self) -> bool {
        self.busy.len() >= BUSY
    }

    /// `false`: it is counted, and not remembered by name.
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

    /// Those whose servers are asked about again: they were not through, or are to be named.
    pub(crate) fn again(&self) -> Vec<u64> {
        self.busy.union(&self.unconfirmed).copied().collect()
    }

    /// Only records that still say something.
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
        // Asked again, they are the same ones.
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
