//! Required affinity and anti-affinity between pods.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Newcomer, Node, PodTerm, Resident};
use crate::refusal::{Filter, Refusal};
use crate::residents::Counts;

/// The label that every namespace has, with its name.
pub(crate) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

impl PodTerm {
    fn is_about(&self, pod: &Resident) -> bool {
        let by_label = |selector: &scupper_engine::Selector| {
            selector.matches(&BTreeMap::from([(
                NAMESPACE_NAME.to_owned(),
                pod.namespace.clone(),
            )]))
        };
        let in_namespace = || {
            self.namespaces.contains(&pod.namespace) || self.namespace_selector.as_ref().is_some_and(by_label)
        };
        self.selector.matches(&pod.labels) && in_namespace()
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
    pub(crate) fn of(
        newcomer: &'a Newcomer,
        nodes: &'a [Node],
        residents: impl Iterator<Item = (&'a Resident, &'a Counts)>,
    ) -> Self {
        let own = &newcomer.resident;
        let mut terms = Self {
            newcomer,
            near: vec![Values::new(); newcomer.affinity.len()],
            is_first: false,
            far: vec![Values::new(); own.anti_affinity.len()],
            unwanted: BTreeMap::new(),
        };
        let meets_all = |pod: &Resident| newcomer.affinity.iter().all(|term| term.is_about(pod));
        for (resident, counts) in residents {
            let values = |key: &str| values(nodes, counts, key);
            // Only pods that meet all terms count for each, as the scheduler has it.
            if !newcomer.affinity.is_empty() && meets_all(resident) {
                for (near, term) in terms.near.iter_mut().zip(&newcomer.affinity) {
                    near.extend(values(&term.topology_key));
                }
            }
            for (far, term) in terms.far.iter_mut().zip(&own.anti_affinity) {
                if term.is_about(resident) {
                    far.extend(values(&term.topology_key));
                }
            }
            for term in resident.anti_affinity.iter().filter(|term| term.is_about(own)) {
                let unwanted = terms.unwanted.entry(&term.topology_key).or_default();
                unwanted.extend(values(&term.topology_key));
            }
        }
        terms.is_first = terms.near.iter().all(BTreeSet::is_empty) && meets_all(own);
        terms
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

/// The values of a label of these nodes.
fn values<'a>(nodes: &'a [Node], counts: &Counts, key: &str) -> Values<'a> {
    let nodes = counts.keys().filter_map(|place| nodes.get(*place));
    let value = |node: &'a Node| node.labels.get(key).map(String::as_str);
    nodes.filter_map(value).collect()
}
