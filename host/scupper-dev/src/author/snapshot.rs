//! A snapshot of a cluster in a file: the node, its pods and the relevant budgets.

use std::io;
use std::path::{Path, PathBuf};

use scupper_api::facts::FactObject;
use scupper_engine::{Budget, Node, Pod};
use serde_json::Value;
use thiserror::Error;

use scupper_cluster::{DecodeError, Object, decode};

use super::drain_requests::open_of;
use super::fact_objects::FactObjects;

/// A node with its pods.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The node.
    pub node: Node,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// Pods on other nodes, or on none yet.
    pub elsewhere: Vec<Pod>,
    /// All budgets.
    pub budgets: Vec<Budget>,
    /// What else policies may ask about. Of DrainRequests only those of the node that have no answer yet.
    pub facts: FactObjects,
}

/// Why a snapshot cannot be read.
#[derive(Debug, Error)]
pub(crate) enum SnapshotError {
    /// The file cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// It is neither YAML nor JSON.
    #[error("{}: {message}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The error and its place.
        message: String,
    },
    /// An object in it is invalid.
    #[error("{}", file.display())]
    Object {
        /// The file.
        file: PathBuf,
        /// The error.
        #[source]
        source: DecodeError,
    },
    /// It has no node.
    #[error("{} has no node; make it with `kubectl get node,pods,pdb -A -o yaml`", .0.display())]
    NoNode(PathBuf),
    /// It has several nodes.
    #[error("{} has {} nodes; choose one: {}", file.display(), nodes.len(), nodes.join(", "))]
    ManyNodes {
        /// The file.
        file: PathBuf,
        /// Their names.
        nodes: Vec<String>,
    },
    /// It has another node.
    #[error("{} has no node `{node}`; it has {}", file.display(), nodes.join(", "))]
    OtherNode {
        /// The file.
        file: PathBuf,
        /// The requested one.
        node: String,
        /// The existing ones.
        nodes: Vec<String>,
    },
}

impl Snapshot {
    /// Reads the output of `kubectl get -o yaml` or `-o json`: one list, or several documents. With several nodes it
    /// takes the one of this name. Blocks.
    pub(crate) fn read(file: &Path, node: Option<&str>) -> Result<Self, SnapshotError> {
        let text = std::fs::read_to_string(file).map_err(|source| SnapshotError::Read {
            file: file.to_owned(),
            source,
        })?;
        let values = values(&text).map_err(|message| SnapshotError::Syntax {
            file: file.to_owned(),
            message,
        })?;
        let mut objects = Vec::new();
        for value in values {
            objects.extend(decode(value).map_err(|source| SnapshotError::Object {
                file: file.to_owned(),
                source,
            })?);
        }
        Self::of(objects, file, node)
    }

    /// Of a node without pods.
    pub(crate) fn of_node(node: Node) -> Self {
        Self {
            node,
            pods: Vec::new(),
            elsewhere: Vec::new(),
            budgets: Vec::new(),
            facts: FactObjects::default(),
        }
    }

    fn of(objects: Vec<Object>, file: &Path, wanted: Option<&str>) -> Result<Self, SnapshotError> {
        let (mut nodes, mut pods, mut budgets) = (Vec::new(), Vec::new(), Vec::new());
        let (mut facts, mut requests) = (FactObjects::default(), Vec::new());
        for object in objects {
            match object {
                Object::Node(node) => nodes.push(*node),
                Object::Pod { pod, spec } => {
                    pods.push(*pod);
                    facts.add_spec(spec);
                }
                Object::Fact(FactObject::Budget(budget)) => budgets.push(*budget),
                Object::Fact(object) => facts.add(object),
                Object::DrainRequest(request) => requests.push(*request),
                Object::Other { .. } => {}
            }
        }
        let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
        let file = || file.to_owned();
        let node =
            match wanted {
                Some(name) => nodes.into_iter().find(|node| node.name == name).ok_or_else(|| {
                    SnapshotError::OtherNode {
                        file: file(),
                        node: name.to_owned(),
                        nodes: names,
                    }
                })?,
                None if names.len() > 1 => {
                    return Err(SnapshotError::ManyNodes {
                        file: file(),
                        nodes: names,
                    });
                }
                None => nodes.pop().ok_or_else(|| SnapshotError::NoNode(file()))?,
            };
        let (pods, elsewhere) = pods.into_iter().partition(|pod: &Pod| pod.node == node.name);
        for request in open_of(&node.name, requests) {
            facts.add(FactObject::DrainRequest(request));
        }
        Ok(Self {
            node,
            pods,
            elsewhere,
            budgets,
            facts,
        })
    }
}

fn values(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{') {
        return match serde_json::from_str(text) {
            Ok(value) => Ok(vec![value]),
            Err(error) => Err(error.to_string()),
        };
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().filter(|value| !value.is_null()).collect())
}

#[cfg(test)]
mod tests {
    use scupper_api::facts::{
        FactKind, FactQuery, FactType as _, PersistentVolume, PersistentVolumeClaim, VolumeAttachment,
    };

    use super::*;

    const NODES: &str = r#"
apiVersion: v1
kind: List
items:
- {kind: Node, metadata: {name: a}}
- {kind: Node, metadata: {name: b}, spec: {unschedulable: true}}
- {kind: Pod, metadata: {namespace: shop, name: cart, uid: "1"}, spec: {nodeName: b}, status: {phase: Running}}
- {kind: Pod, metadata: {namespace: shop, name: site, uid: "2"}, spec: {nodeName: a}}
---
kind: PodDisruptionBudget
metadata: {namespace: shop, name: cart}
status: {disruptionsAllowed: 1}
"#;

    fn read(text: &str, node: Option<&str>) -> Result<Snapshot, SnapshotError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Snapshot::read(file.path(), node)
    }

    #[test]
    fn one_node_and_its_own_pods_are_taken() {
        let snapshot = read(NODES, Some("b")).unwrap();
        assert!(snapshot.node.unschedulable);
        let pods: Vec<String> = snapshot.pods.iter().map(|pod| pod.id.to_string()).collect();
        assert_eq!(pods, ["shop/cart"]);
        assert_eq!(snapshot.budgets.len(), 1);
    }

    #[test]
    fn volumes_and_pods_of_other_nodes_are_taken_for_policies_that_ask() {
        const MORE: &str = r#"
- kind: PersistentVolumeClaim
  metadata: {namespace: shop, name: data}
  spec: {volumeName: pv-1, storageClassName: fast, accessModes: [ReadWriteOnce]}
- kind: PersistentVolume
  metadata: {name: pv-1}
  spec:
    csi: {driver: topolvm.io}
    nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.topolvm.io/node, operator: In, values: [b]}]}]}}
- {kind: VolumeAttachment, metadata: {name: x}, spec: {nodeName: b, source: {persistentVolumeName: pv-1}}}
- kind: Pod
  metadata: {namespace: shop, name: db, uid: "3"}
  spec:
    nodeName: b
    schedulingGroup: {podGroupName: ring}
    volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---"#;
        let text = NODES.replacen("\n---", MORE, 1);
        let snapshot = read(&text, Some("b")).unwrap();
        let found = |kind, namespace: &str, name: &str| {
            let place = (namespace.to_owned(), name.to_owned());
            snapshot.facts.answer(&FactQuery::one(kind, place))
        };
        let claim = found(FactKind::PersistentVolumeClaim, "shop", "data");
        assert_eq!(PersistentVolumeClaim::of(&claim[0]).unwrap().volume, "pv-1");
        let volume = found(FactKind::PersistentVolume, "", "pv-1");
        let volume = PersistentVolume::of(&volume[0]).unwrap();
        assert_eq!(volume.kind, "csi");
        assert!(volume.is_local_to("b"), "it is local to this node");
        assert!(!volume.is_local_to("a"));
        let attachment = found(FactKind::VolumeAttachment, "", "pv-1");
        assert_eq!(VolumeAttachment::of(&attachment[0]).unwrap().node, "b");
        let db = snapshot.pods.iter().find(|pod| pod.id.name == "db").unwrap();
        let spec = snapshot.facts.spec(db);
        assert_eq!(spec.volumes[0].claim.as_deref(), Some("data"));
        assert_eq!(snapshot.facts.peer(db).groups[0].1, "ring");
        let elsewhere = snapshot.elsewhere.iter().map(|pod| pod.id.to_string());
        assert_eq!(elsewhere.collect::<Vec<_>>(), ["shop/site"]);
    }

    #[test]
    fn an_unsuitable_snapshot_is_reported_with_the_reason() {
        let reported = |text, node| {
            let reported = read(text, node).unwrap_err().to_string();
            reported
                .split_once(" has ")
                .map(|(_, rest)| rest.to_owned())
                .unwrap_or(reported)
        };
        assert_eq!(reported(NODES, None), "2 nodes; choose one: a, b");
        assert_eq!(reported(NODES, Some("c")), "no node `c`; it has a, b");
        assert!(reported("kind: List\nitems: []", None).starts_with("no node;"));
        assert!(
            reported("a: [", None).contains("line 1"),
            "{}",
            reported("a: [", None)
        );
        assert!(reported("{\"kind\": ", None).contains("line 1"));
    }
}
