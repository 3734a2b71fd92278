//! Services, and how many of the pods that stay are endpoints of each.

use std::collections::BTreeMap;

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
pub struct Services(BTreeMap<String, Vec<Service>>);

impl Services {
    /// These Services.
    pub fn new(services: impl IntoIterator<Item = Service>) -> Self {
        let mut by_namespace: BTreeMap<String, Vec<Service>> = BTreeMap::new();
        for service in services {
            let others = by_namespace.entry(service.namespace.clone()).or_default();
            others.push(service);
        }
        Self(by_namespace)
    }

    /// Counts a ready pod.
    pub fn count(&mut self, namespace: &str, labels: &BTreeMap<String, String>) {
        let services = self.0.get_mut(namespace).into_iter().flatten();
        let own = services.filter(|service| service.selects(labels));
        own.for_each(|service| service.ready += 1);
    }

    /// Those of which a pod with these labels is an endpoint once it is ready.
    pub fn of<'a>(
        &'a self,
        namespace: &'a str,
        labels: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'a Service> {
        let services = self.0.get(namespace).into_iter().flatten();
        services.filter(move |service| service.selects(labels))
    }
}
