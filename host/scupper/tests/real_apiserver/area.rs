//! One test's part of the control plane that the tests of this program share: nodes, namespaces, and the name of a driver.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use serde_json::json;

use crate::setup::until;
use crate::testbed::Testbed;

/// As many as all tests take.
const NODES: usize = 48;
const LABEL: &str = "testbed/area";

/// Pods of its namespaces run on its nodes only, and no others do.
pub(crate) struct Area {
    testbed: &'static Testbed,
    number: usize,
    nodes: Vec<String>,
    namespaces: Mutex<BTreeSet<String>>,
}

impl Area {
    pub(crate) fn with(nodes: usize) -> Self {
        static AREAS: AtomicUsize = AtomicUsize::new(0);
        static FIRST: AtomicUsize = AtomicUsize::new(0);
        let testbed = shared();
        let number = AREAS.fetch_add(1, Ordering::Relaxed);
        let first = FIRST.fetch_add(nodes, Ordering::Relaxed);
        assert!(first + nodes <= NODES, "more nodes are needed: {NODES}");
        let nodes: Vec<String> = (first..first + nodes)
            .map(|node| format!("node-{node}"))
            .collect();
        for node in &nodes {
            let label = json!({"metadata": {"labels": {LABEL: number.to_string()}}});
            testbed.patch(&format!("/api/v1/nodes/{node}"), &label);
        }
        Self {
            testbed,
            number,
            nodes,
            namespaces: Mutex::default(),
        }
    }

    pub(crate) fn node(&self, place: usize) -> &str {
        &self.nodes[place]
    }

    pub(crate) fn nodes(&self) -> Vec<&str> {
        self.nodes.iter().map(String::as_str).collect()
    }

    /// A namespace whose name begins so; created when it is first asked for.
    pub(crate) fn namespace(&self, name: &str) -> String {
        let name = format!("{name}-{}", self.number);
        let mut namespaces = self.namespaces.lock().unwrap();
        if namespaces.insert(name.clone()) {
            let selector = format!("{LABEL}={}", self.number);
            let notes = json!({"scheduler.alpha.kubernetes.io/node-selector": selector});
            let namespace = json!({"metadata": {"name": name, "annotations": notes}});
            self.testbed.post("/api/v1/namespaces", &namespace);
            let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
            until("it takes pods", || {
                self.testbed.get(&accounts)["items"] != json!([])
            });
        }
        name
    }

    /// The name of its driver.
    pub(crate) fn driver(&self) -> String {
        format!("driver-{}.example", self.number)
    }
}

impl Deref for Area {
    type Target = Testbed;

    fn deref(&self) -> &Testbed {
        self.testbed
    }
}

/// Of all tests that need no control plane of their own.
fn shared() -> &'static Testbed {
    static SHARED: OnceLock<&Testbed> = OnceLock::new();
    SHARED.get_or_init(|| {
        let count = NODES.to_string();
        let selects = ["--apiserver-arg", "--enable-admission-plugins=PodNodeSelector"];
        let testbed = Testbed::bare(&[&["--nodes", &count][..], &selects].concat());
        testbed.install("lifecycle.yaml");
        testbed.leak()
    })
}
