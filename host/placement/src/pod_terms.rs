//! Required affinity and anti-affinity between pods.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::Selector;

use crate::model::{Newcomer, Node, PodTerm};
use crate::refusal::{Filter, Refusal};
use crate::residents::{Counts, Residents};

/// The label that every namespace has, with its name.
pub(crate) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

impl PodTerm {
    fn is_in(&self, namespace: &str) -> bool {
        let by_label = |selector: &Selector| {
            let labels = [(NAMESPACE_NAME.to_owned(), namespace.to_owned())];
            selector.matches(&BTreeMap::from(labels))
        };
        self.namespaces.contains(namespace) || self.namespace_selector.as_ref().is_some_and(by_label)
    }

    fn is_about(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        self.selector.matches(labels) && self.is_in(namespace)
    }
}

/// The values of a topology's label where a term finds pods.
type Values<'a> = BTreeSet<&'a str>;

/// Where a newcomer may be for its own terms and those of the pods that are there.
pub(crate) struct PodTerms<'a> {
    newcomer: &'a Newcomer,
    /// For each of its terms of affinity.
    near: Vec<Values<'a>>,
    /// It is the first of the pods that it wants to be near.
    is_first: bool,
    /// For each of its terms of anti-affinity.
    far: Vec<Values<'a>>,
    /// By the label: where other pods do not want it.
    unwanted: BTreeMap<&'a str, Values<'a>>,
}

impl<'a> PodTerms<'a> {
    pub(crate) fn of(newcomer: &'a Newcomer, nodes: &'a [Node], residents: &'a Residents) -> Self {
        let own = &newcomer.resident;
        let near = near(newcomer, nodes, residents);
        let far = own.anti_affinity.iter().map(|term| {
            let there = residents.of(|namespace| term.is_in(namespace));
            let there = there.filter(|(_, labels, _)| term.selector.matches(labels));
            there
                .flat_map(|(_, _, counts)| values(nodes, counts, &term.topology_key))
                .collect()
        });
        let mut unwanted: BTreeMap<&str, Values<'a>> = BTreeMap::new();
        let others = residents.anti_affinity();
        for (term, counts) in others.filter(|(term, _)| term.is_about(&own.namespace, &own.labels)) {
            let places = unwanted.entry(&term.topology_key).or_default();
            places.extend(values(nodes, counts, &term.topology_key));
        }
        let mut affinity = newcomer.affinity.iter();
        let meets_own = affinity.all(|term| term.is_about(&own.namespace, &own.labels));
        Self {
            newcomer,
            is_first: meets_own && near.iter().all(BTreeSet::is_empty),
            far: far.collect(),
            near,
            unwanted,
        }
    }

    pub(crate) fn refusal(&self, node: &Node) -> Option<Refusal> {
        let value = |key: &str| node.labels.get(key).map(String::as_str);
        let near = self.newcomer.affinity.iter().zip(&self.near);
        for (term, near) in near {
            let is_near = |value: &str| self.is_first || near.contains(value);
            if !value(&term.topology_key).is_some_and(is_near) {
                return Some(Refusal::new(Filter::PodAffinity, &term.topology_key));
            }
        }
        let far = self.newcomer.resident.anti_affinity.iter().zip(&self.far);
        for (term, far) in far {
            if value(&term.topology_key).is_some_and(|value| far.contains(value)) {
                return Some(Refusal::new(Filter::PodAntiAffinity, &term.topology_key));
            }
        }
        let mut unwanted = self.unwanted.iter();
        unwanted
            .find(|(key, values)| value(key).is_some_and(|value| values.contains(value)))
            .map(|(key, _)| Refusal::new(Filter::AntiAffinityOfOthers, *key))
    }
}

/// For each term of affinity of a newcomer, the places of the pods that meet it. Only pods that meet all of them count, as
/// the scheduler has it.
fn near<'a>(newcomer: &Newcomer, nodes: &'a [Node], residents: &Residents) -> Vec<Values<'a>> {
    let mut near = vec![Values::new(); newcomer.affinity.len()];
    let Some((first, others)) = newcomer.affinity.split_first() else {
        return near;
    };
    let there = residents.of(|namespace| first.is_in(namespace));
    let there = there.filter(|(namespace, labels, _)| {
        first.selector.matches(labels) && others.iter().all(|term| term.is_about(namespace, labels))
    });
    for (_, _, counts) in there {
        for (near, term) in near.iter_mut().zip(&newcomer.affinity) {
            near.extend(values(nodes, counts, &term.topology_key));
        }
    }
    near
}

/// The values of a label of these nodes.
fn values<'a>(nodes: &'a [Node], counts: &Counts, key: &str) -> Values<'a> {
    let nodes = counts.keys().filter_map(|place| nodes.get(*place));
    let value = |node: &'a Node| node.labels.get(key).map(String::as_str);
    nodes.filter_map(value).collect()
}
