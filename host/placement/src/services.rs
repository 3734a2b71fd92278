//! Services, and how many of the pods that stay are endpoints of each.

use std::collections::BTreeMap;

use scupper_engine::SelectorIndex;

/// A Service that selects pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The labels of its pods.
    pub selector: BTreeMap<String, String>,
    /// How many ready pods have been counted.
    pub ready: usize,
}

impl Service {
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
        self.selector.iter().all(has)
    }
}

/// All Services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Services {
    all: Vec<Service>,
    /// Their places, by what they select.
    index: SelectorIndex<usize>,
}

impl Services {
    /// These Services.
    pub fn new(services: impl IntoIterator<Item = Service>) -> Self {
        let all: Vec<Service> = services.into_iter().collect();
        let mut index = SelectorIndex::default();
        for (place, service) in all.iter().enumerate() {
            index.insert(&service.namespace, &service.selector, place);
        }
        Self { all, index }
    }

    /// Counts a ready pod.
    pub fn count(&mut self, namespace: &str, labels: &BTreeMap<String, String>) {
        for place in self.index.candidates(namespace, labels) {
            let own = self.all.get_mut(*place).filter(|service| service.selects(labels));
            own.into_iter().for_each(|service| service.ready += 1);
        }
    }

    /// Those of which a pod with these labels is an endpoint once it is ready.
    pub fn of<'a>(
        &'a self,
        namespace: &str,
        labels: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'a Service> {
        let candidates = self.index.candidates(namespace, labels);
        let candidates = candidates.filter_map(|place| self.all.get(*place));
        candidates.filter(move |service| service.selects(labels))
    }
}
