//! The pods on the nodes, as other pods meet them. Pods that are the same in that are kept once.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Newcomer, PodTerm, Resident};

/// How many pods of a kind run on each node, by the node's place in the list.
pub(crate) type Counts = BTreeMap<usize, u64>;

type Labels = BTreeMap<String, String>;

/// Pods by what terms say of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Residents {
    /// By namespace and labels.
    labels: BTreeMap<String, BTreeMap<Labels, Counts>>,
    /// Those with anti-affinity, by each of its terms.
    anti_affinity: BTreeMap<PodTerm, Counts>,
}

impl Residents {
    pub(crate) fn add(&mut self, resident: &Resident, node: usize) {
        if !self.labels.contains_key(&resident.namespace) {
            self.labels.insert(resident.namespace.clone(), BTreeMap::new());
        }
        if let Some(kinds) = self.labels.get_mut(&resident.namespace) {
            count(kinds, &resident.labels, [(&node, &1)]);
        }
        for term in &resident.anti_affinity {
            count(&mut self.anti_affinity, term, [(&node, &1)]);
        }
    }

    /// With the labels only that these newcomers ask about: so far fewer pods differ.
    pub(crate) fn for_newcomers(&self, newcomers: &[Newcomer]) -> Self {
        let keys: BTreeSet<&str> = newcomers.iter().flat_map(Newcomer::label_keys).collect();
        let namespaces = self.labels.iter().map(|(namespace, kinds)| {
            let mut fewer = BTreeMap::new();
            for (labels, counts) in kinds {
                let asked = labels.iter().filter(|(key, _)| keys.contains(key.as_str()));
                let asked = asked.map(|(key, value)| (key.clone(), value.clone()));
                count(&mut fewer, &asked.collect(), counts);
            }
            (namespace.clone(), fewer)
        });
        Self {
            labels: namespaces.collect(),
            anti_affinity: self.anti_affinity.clone(),
        }
    }

    /// The pods of these namespaces: namespace, labels and where they are.
    pub(crate) fn of(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &Labels, &Counts)> {
        let namespaces = self.labels.iter().filter(move |(name, _)| wanted(name));
        namespaces.flat_map(|(name, kinds)| {
            let kinds = kinds.iter();
            kinds.map(|(labels, counts)| (name.as_str(), labels, counts))
        })
    }

    /// The terms of anti-affinity, and where pods with them are.
    pub(crate) fn anti_affinity(&self) -> impl Iterator<Item = (&PodTerm, &Counts)> {
        self.anti_affinity.iter()
    }
}

impl Newcomer {
    /// The labels of pods that its terms ask about.
    fn label_keys(&self) -> impl Iterator<Item = &str> {
        let terms = self.affinity.iter().chain(&self.resident.anti_affinity);
        let spreads = self.spread.iter().map(|spread| &spread.selector);
        let selectors = terms.map(|term| &term.selector).chain(spreads);
        selectors.flat_map(|selector| {
            let keys = selector.expressions.iter().map(|term| &term.key);
            keys.chain(selector.labels.keys()).map(String::as_str)
        })
    }
}

fn count<'a, K: Ord + Clone>(
    kinds: &mut BTreeMap<K, Counts>,
    kind: &K,
    more: impl IntoIterator<Item = (&'a usize, &'a u64)>,
) {
    if !kinds.contains_key(kind) {
        kinds.insert(kind.clone(), Counts::new());
    }
    if let Some(counts) = kinds.get_mut(kind) {
        for (node, pods) in more {
            *counts.entry(*node).or_default() += pods;
        }
    }
}
