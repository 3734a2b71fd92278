//! The demo's cluster: two nodes, three Slurm workers with jobs, a shop behind a disruption budget, and pods that are
//! kept.

use scupper_simulator::api::{ApiServer, Kind, Options, Store, StoreError, objects};
use serde_json::{Value, json};

use super::DemoError;

/// The drained node.
pub(super) const NODE: &str = "worker-1";
const OTHER: &str = "worker-2";

/// A cluster that replaces evicted pods, with the driver's namespace for its leases.
pub(super) async fn cluster() -> Result<ApiServer, DemoError> {
    cluster_with(Vec::new()).await
}

/// The same with CRDs.
pub(super) async fn cluster_with(kinds: Vec<Kind>) -> Result<ApiServer, DemoError> {
    let options = Options {
        kinds,
        takes: std::time::Duration::from_millis(700),
        ..Options::default()
    };
    let cluster = ApiServer::start(options).await.map_err(DemoError::Server)?;
    let namespace = objects::namespace("scupper").build();
    cluster.store().apply(namespace).map_err(DemoError::Scene)?;
    Ok(cluster)
}

/// Creates everything in the store.
pub(super) fn build(store: &Store) -> Result<(), StoreError> {
    for object in nodes()
        .into_iter()
        .chain(slurm())
        .chain(shop())
        .chain(plain())
        .chain(staying())
    {
        store.apply(object)?;
    }
    Ok(())
}

fn nodes() -> Vec<Value> {
    [NODE, OTHER].map(|name| objects::node(name).build()).into()
}

/// Slurm workers whose jobs end 3, 6 and 9 s after the drain of their Slurm nodes has begun.
fn slurm() -> Vec<Value> {
    let worker = |number: usize| {
        objects::pod("slurm", &format!("gpu-{number}"), NODE)
            .slurm(&["Allocated"])
            .owner_statefulset("gpu")
            .annotation("testbed/job-ends", &format!("{}", 3 * (number + 1)))
            .build()
    };
    (0..3).map(worker).collect()
}

/// Two replicas, one of which must be available: the second waits until the first one's replacement is ready, in 4 s.
fn shop() -> Vec<Value> {
    let replica = |name: &str| {
        objects::pod("shop", name, NODE)
            .owner_replicaset("cart")
            .label("app", "cart")
            .takes(1.5)
            .build()
    };
    vec![
        objects::budget("shop", "cart", &[("app", "cart")], 1),
        replica("cart-1"),
        replica("cart-2"),
        // After its pods, or it would create others.
        objects::replica_set("shop", "cart", 2)
            .with(
                "/spec/template/metadata/annotations",
                json!({ "testbed/ready": "4" }),
            )
            .build(),
    ]
}

fn plain() -> Vec<Value> {
    let bare = |name: &str, takes: f64| {
        objects::pod("web", name, NODE)
            .owner_replicaset("site")
            .takes(takes)
            .build()
    };
    vec![bare("site-1", 0.4), bare("site-2", 1.0), bare("site-3", 2.0)]
}

fn staying() -> Vec<Value> {
    vec![
        objects::pod("kube-system", "node-exporter-x7k2p", NODE)
            .daemonset("node-exporter")
            .build(),
        objects::daemon_set("kube-system", "node-exporter").build(),
        objects::pod("kube-system", "kube-proxy-worker-1", NODE)
            .mirror()
            .build(),
    ]
}

/// Sets an annotation of an object that already has some.
pub(super) fn annotate(object: &mut Value, key: &str, value: &str) {
    let annotations = object.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(key.to_owned(), value.into());
    }
}
