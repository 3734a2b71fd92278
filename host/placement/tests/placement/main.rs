//! Which nodes take a pod, by each filter, and what becomes of several pods together.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod between_pods;
mod filters;
mod together;

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{Operator, Requirement, Selector};
use scupper_placement::{
    Amounts, HostPort, Newcomer, Node, NodeTerm, Placement, PodTerm, Resident, Scene, Spread, Taint,
    Toleration,
};

const GI: u64 = 1 << 30;
const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn amounts(pairs: &[(&str, u64)]) -> Amounts {
    pairs
        .iter()
        .map(|(name, amount)| ((*name).to_owned(), *amount))
        .collect()
}

/// A node of a zone, with 4 CPUs, 8 GiB and place for 10 pods.
fn node(name: &str, zone: &str) -> Node {
    Node {
        name: name.to_owned(),
        labels: texts(&[(HOST, name), (ZONE, zone)]),
        allocatable: Some(amounts(&[("cpu", 4000), ("memory", 8 * GI), ("pods", 10)])),
        ..Node::default()
    }
}

fn resident(app: &str) -> Resident {
    Resident {
        namespace: "shop".to_owned(),
        labels: texts(&[("app", app)]),
        ..Resident::default()
    }
}

fn newcomer(app: &str) -> Newcomer {
    Newcomer {
        resident: resident(app),
        ..Newcomer::default()
    }
}

fn requesting(app: &str, requests: &[(&str, u64)]) -> Newcomer {
    let mut newcomer = newcomer(app);
    newcomer.resident.requests = amounts(requests);
    newcomer
}

fn app(name: &str) -> Selector {
    Selector {
        labels: texts(&[("app", name)]),
        ..Selector::default()
    }
}

fn expression(key: &str, operator: Operator, values: &[&str]) -> Selector {
    Selector {
        expressions: vec![Requirement {
            key: key.to_owned(),
            operator,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }],
        ..Selector::default()
    }
}

fn labels(selector: Selector) -> NodeTerm {
    NodeTerm {
        labels: selector,
        fields: Selector::EVERYTHING,
    }
}

/// A term about pods of an app in `shop`.
fn term(name: &str, topology: &str) -> PodTerm {
    PodTerm {
        selector: app(name),
        namespaces: BTreeSet::from(["shop".to_owned()]),
        namespace_selector: None,
        topology_key: topology.to_owned(),
    }
}

/// A cluster with these pods.
fn scene(nodes: &[Node], residents: &[(&str, Resident)]) -> Scene {
    let mut scene = Scene::new(nodes.to_vec());
    for (node, resident) in residents {
        scene.add(node, resident.clone());
    }
    scene
}

/// Each newcomer's node, or why it has none.
fn placed(scene: &Scene, drained: &[&str], newcomers: &[Newcomer]) -> Vec<Result<String, String>> {
    let trial = scene.trial(drained.iter().copied(), []);
    let placed = trial.place(newcomers).into_iter();
    placed
        .map(|placement| match placement {
            Placement::Fits { node } => Ok(node),
            Placement::Nowhere { refusals, .. } => Err(refusals.to_string()),
        })
        .collect()
}

/// The same for one newcomer, on one node. `Err`: without the first words, `of 1 node, 1`.
fn on(node: &Node, residents: &[Resident], newcomer: &Newcomer) -> Result<(), String> {
    let residents: Vec<_> = residents
        .iter()
        .map(|resident| (node.name.as_str(), resident.clone()))
        .collect();
    let scene = scene(std::slice::from_ref(node), &residents);
    let [placed] = &placed(&scene, &[], std::slice::from_ref(newcomer))[..] else {
        panic!("one newcomer")
    };
    match placed {
        Ok(_) => Ok(()),
        Err(why) => Err(why.strip_prefix("of 1 node, 1 ").unwrap().to_owned()),
    }
}

/// `Ok`, or the refusal.
fn refused(why: &str) -> Result<(), String> {
    Err(why.to_owned())
}
