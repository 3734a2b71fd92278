//! Simulates controllers and the scheduler: ReplicaSets and StatefulSets get their missing pods on the first schedulable node,
//! DaemonSets one on every node, cordoned or not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::fields::{items, text};
use super::super::store::Store;
use super::Gate;

/// Runs until dropped.
pub(super) async fn run(store: Store, mut gate: Gate) {
    let mut latest = store.latest();
    let mut made = 0;
    while gate.open().await {
        latest.mark_unchanged();
        for pod in lacking(&store, &mut made) {
            if let Err(error) = store.apply(pod) {
                tracing::debug!(%error, "an owner could not create its pod");
            }
        }
        if latest.changed().await.is_err() {
            return;
        }
    }
}

/// The pods that owners lack.
fn lacking(store: &Store, made: &mut u32) -> Vec<Value> {
    // This runs after every write, and most test clusters have no owners.
    let owners = ["replicasets.apps", "statefulsets.apps", "daemonsets.apps"];
    if store.read(|table| owners.iter().all(|it| table.list(it, None).next().is_none())) {
        return Vec::new();
    }
    let (nodes, pods) = (store.list("nodes"), shared(store, "pods"));
    let owned = owned(&pods);
    let owned = |set: &Value| {
        let pods = owned.get(text(set, "/metadata/uid"));
        pods.into_iter().flatten().copied()
    };
    let free = nodes
        .iter()
        .find(|node| node.pointer("/spec/unschedulable") != Some(&Value::Bool(true)));
    let mut wanted = Vec::new();
    if let Some(node) = free.map(|node| text(node, "/metadata/name")) {
        for set in store.list("replicasets.apps") {
            for _ in owned(&set).filter(|pod| !ending(pod)).count()..replicas(&set) {
                *made += 1;
                wanted.push(pod_of(
                    &set,
                    &format!("{}-{made:05}", text(&set, "/metadata/name")),
                    node,
                ));
            }
        }
        for set in store.list("statefulsets.apps") {
            let there: BTreeSet<&str> = owned(&set).map(|pod| text(pod, "/metadata/name")).collect();
            let names =
                (0..replicas(&set)).map(|number| format!("{}-{number}", text(&set, "/metadata/name")));
            wanted.extend(
                names
                    .filter(|name| !there.contains(&**name))
                    .map(|name| pod_of(&set, &name, node)),
            );
        }
    }
    for set in store.list("daemonsets.apps") {
        let covered: BTreeSet<&str> = owned(&set).map(|pod| text(pod, "/spec/nodeName")).collect();
        for node in nodes
            .iter()
            .map(|node| text(node, "/metadata/name"))
            .filter(|name| !covered.contains(name))
        {
            wanted.push(pod_of(
                &set,
                &format!("{}-{node}", text(&set, "/metadata/name")),
                node,
            ));
        }
    }
    wanted
}

/// The objects of a resource, without a copy of each.
fn shared(store: &Store, resource: &str) -> Vec<Arc<Value>> {
    store.read(|table| {
        let all = table.list(resource, None);
        all.map(|(_, object)| Arc::clone(object)).collect()
    })
}

/// The pods of each owner, by its UID.
fn owned(pods: &[Arc<Value>]) -> BTreeMap<&str, Vec<&Value>> {
    let mut owned = BTreeMap::<_, Vec<_>>::new();
    for pod in pods {
        for owner in items(pod, "/metadata/ownerReferences") {
            let uid = text(owner, "/uid");
            if !uid.is_empty() {
                owned.entry(uid).or_default().push(&**pod);
            }
        }
    }
    owned
}

/// A pod that is terminating or has finished no longer counts.
fn ending(pod: &Value) -> bool {
    pod.pointer("/metadata/deletionTimestamp").is_some()
        || matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn replicas(set: &Value) -> usize {
    let wanted = set.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    usize::try_from(wanted).unwrap_or(usize::MAX)
}

fn pod_of(set: &Value, name: &str, node: &str) -> Value {
    let template = |pointer: &str| {
        set.pointer(&format!("/spec/template{pointer}"))
            .cloned()
            .unwrap_or_else(|| json!({}))
    };
    let mut spec = template("/spec");
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("nodeName".to_owned(), node.into());
        spec.entry("terminationGracePeriodSeconds").or_insert(30.into());
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": text(set, "/metadata/namespace"), "name": name,
            "labels": template("/metadata/labels"), "annotations": template("/metadata/annotations"),
            "ownerReferences": [{
                "apiVersion": text(set, "/apiVersion"), "kind": text(set, "/kind"),
                "name": text(set, "/metadata/name"), "uid": text(set, "/metadata/uid"),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    })
}
