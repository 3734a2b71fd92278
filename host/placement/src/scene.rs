//! The cluster as it is: nodes, and the pods that stay on them.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Amounts, HostPort, Node, Resident};
use crate::residents::Residents;
use crate::trial::Trial;

/// What the pods of a node use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Used {
    pub(crate) requests: Amounts,
    pub(crate) pods: u64,
    pub(crate) ports: BTreeSet<HostPort>,
}

impl Used {
    pub(crate) fn add(&mut self, resident: &Resident) {
        self.pods += 1;
        self.ports.extend(resident.ports.iter().cloned());
        for (name, amount) in &resident.requests {
            let sum = self.requests.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }
}

/// Nodes, with the pods that are there in every trial.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub(crate) nodes: Vec<Node>,
    pub(crate) places: BTreeMap<String, usize>,
    pub(crate) residents: Residents,
    pub(crate) used: Vec<Used>,
}

impl Scene {
    /// These nodes, without pods.
    pub fn new(nodes: Vec<Node>) -> Self {
        let named = nodes
            .iter()
            .enumerate()
            .map(|(place, node)| (node.name.clone(), place));
        Self {
            places: named.collect(),
            residents: Residents::default(),
            used: vec![Used::default(); nodes.len()],
            nodes,
        }
    }

    /// How many nodes there are.
    pub const fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Adds a pod that runs on a node. Pods of other nodes than these are ignored.
    pub fn add(&mut self, node: &str, resident: Resident) {
        let Some(place) = self.places.get(node).copied() else {
            return;
        };
        if let Some(used) = self.used.get_mut(place) {
            used.add(&resident);
            self.residents.add(&resident, place);
        }
    }

    /// What becomes of newcomers if these nodes take no pods, and these pods stay on their nodes besides.
    pub fn trial<'a>(
        &'a self,
        drained: impl IntoIterator<Item = &'a str>,
        staying: impl IntoIterator<Item = (&'a str, &'a Resident)>,
    ) -> Trial<'a> {
        let place = |node: &str| self.places.get(node).copied();
        let drained = drained.into_iter().filter_map(place).collect();
        let staying = staying.into_iter();
        let staying = staying.filter_map(|(node, resident)| Some((place(node)?, resident)));
        Trial::new(self, drained, staying)
    }
}
