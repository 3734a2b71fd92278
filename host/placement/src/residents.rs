//! The pods on the nodes. Pods of one workload are mostly the same, and kept once.

use std::collections::BTreeMap;

use crate::model::Resident;

/// How many pods of a kind run on each node, by the node's place in the list.
pub(crate) type Counts = BTreeMap<usize, u64>;

/// Pods by what they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Residents {
    kinds: BTreeMap<Resident, Counts>,
}

impl Residents {
    pub(crate) fn add(&mut self, resident: Resident, node: usize) {
        let counts = self.kinds.entry(resident).or_default();
        *counts.entry(node).or_default() += 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Resident, &Counts)> + Clone {
        self.kinds.iter()
    }
}
