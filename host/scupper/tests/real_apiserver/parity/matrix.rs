//! Pods of every kind that the filters of `kubectl drain` distinguish, on four full nodes, created in bulk.

use std::time::{Duration, SystemTime};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// Requests in flight at once.
const AT_ONCE: usize = 16;
const FINALIZER: &str = "example.com/hold";

/// The owner of the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Nobody,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    Job,
    /// A kind from a CRD.
    Custom,
    Node,
    DaemonSet,
    /// The DaemonSet is gone.
    LostDaemonSet,
    /// The owner reference to the DaemonSet is not marked as the controller.
    PlainDaemonSet,
    /// A DaemonSet of another API group.
    ForeignDaemonSet,
}

pub(super) const OWNERS: [Owner; 11] = [
    Owner::Nobody,
    Owner::ReplicaSet,
    Owner::ReplicationController,
    Owner::StatefulSet,
    Owner::Job,
    Owner::Custom,
    Owner::Node,
    Owner::DaemonSet,
    Owner::LostDaemonSet,
    Owner::PlainDaemonSet,
    Owner::ForeignDaemonSet,
];

/// The state of its deletion. A finalizer stops it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    None,
    /// Its grace period has ended.
    Over,
    /// Its grace period lasts for an hour.
    Begun,
}

/// The fields that the filters check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) owner: Owner,
    pub(super) mirror: bool,
    pub(super) empty_dir: bool,
    pub(super) phase: &'static str,
    pub(super) deletion: Deletion,
}

impl Case {
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for owner in OWNERS {
            for mirror in [false, true] {
                for empty_dir in [false, true] {
                    for phase in ["Pending", "Running", "Succeeded", "Failed"] {
                        for deletion in [Deletion::None, Deletion::Over, Deletion::Begun] {
                            all.push(Self {
                                owner,
                                mirror,
                                empty_dir,
                                phase,
                                deletion,
                            });
                        }
                    }
                }
            }
        }
        all
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.phase, "Succeeded" | "Failed")
    }

    /// The pod's name, and its label `case`.
    pub(super) fn name(&self) -> String {
        let mirror = if self.mirror { "mirror" } else { "pod" };
        let storage = if self.empty_dir { "local" } else { "none" };
        format!(
            "{:?}-{mirror}-{storage}-{}-{:?}",
            self.owner, self.phase, self.deletion
        )
        .to_lowercase()
    }

    /// Fields that no filter checks differ from node to node.
    fn pod(&self, node: usize) -> Value {
        let mut owners: Vec<Value> = self.owner.reference().into_iter().collect();
        let mut volumes = Vec::new();
        let mut annotations = json!({});
        let mut spec = json!({
            "nodeName": format!("node-{node}"),
            "containers": [{"name": "main", "image": "testbed/pause:1"}],
        });
        match node {
            1 => owners.insert(0, reference("example.com/v1", "Group", "group", false)),
            2 => volumes.push(json!({"name": "host", "hostPath": {"path": "/tmp"}})),
            3 => {
                annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = json!("false");
                spec["hostNetwork"] = json!(true);
                spec["terminationGracePeriodSeconds"] = json!(0);
            }
            _ => {}
        }
        if self.empty_dir {
            let medium = if node == 2 {
                json!({"medium": "Memory"})
            } else {
                json!({})
            };
            volumes.push(json!({"name": "scratch", "emptyDir": medium}));
        }
        if self.mirror {
            annotations["kubernetes.io/config.mirror"] = json!("feigned");
        }
        let finalizers = match self.deletion {
            Deletion::None => vec![],
            Deletion::Over | Deletion::Begun => vec![FINALIZER],
        };
        spec["volumes"] = json!(volumes);
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name(),
                "labels": {"case": self.name()},
                "annotations": annotations,
                "finalizers": finalizers,
                "ownerReferences": owners,
            },
            "spec": spec,
        })
    }
}

impl Owner {
    fn reference(self) -> Option<Value> {
        let (version, kind, name) = match self {
            Self::Nobody => return None,
            Self::ReplicaSet => ("apps/v1", "ReplicaSet", "web-5d4f"),
            Self::ReplicationController => ("v1", "ReplicationController", "old"),
            Self::StatefulSet => ("apps/v1", "StatefulSet", "db"),
            Self::Job => ("batch/v1", "Job", "report"),
            Self::Custom => ("example.com/v1", "Widget", "widget"),
            Self::Node => ("v1", "Node", "node-0"),
            Self::DaemonSet | Self::PlainDaemonSet => ("apps/v1", "DaemonSet", "agent"),
            Self::LostDaemonSet => ("apps/v1", "DaemonSet", "lost"),
            Self::ForeignDaemonSet => ("example.com/v1", "DaemonSet", "foreign"),
        };
        Some(reference(version, kind, name, self != Self::PlainDaemonSet))
    }
}

fn reference(version: &str, kind: &str, name: &str, controller: bool) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "name": name, "uid": format!("uid-of-{name}"), "controller": controller,
    })
}

/// The namespace of a node's pods.
pub(super) fn namespace(node: usize) -> String {
    format!("on-{node}")
}

/// Creates the pods of this many nodes, and returns the time of the last deletion.
pub(super) async fn write(client: &Client, nodes: usize) -> SystemTime {
    for node in 0..nodes {
        let name = namespace(node);
        let of_node = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        call(client, "POST", "/api/v1/namespaces", &of_node)
            .await
            .unwrap();
        let path = format!("/apis/apps/v1/namespaces/{name}/daemonsets");
        call(client, "POST", &path, &daemon_set()).await.unwrap();
    }
    let pods = (0..nodes).flat_map(|node| Case::all().into_iter().map(move |case| (node, case)));
    let written = stream::iter(pods).map(|(node, case)| write_one(client, node, case));
    let written: Result<Vec<()>, kube::Error> = written.buffer_unordered(AT_ONCE).try_collect().await;
    written.unwrap();
    SystemTime::now() + Duration::from_secs(1)
}

async fn write_one(client: &Client, node: usize, case: Case) -> Result<(), kube::Error> {
    let pods = format!("/api/v1/namespaces/{}/pods", namespace(node));
    let pod = format!("{pods}/{}", case.name());
    call(client, "POST", &pods, &case.pod(node)).await?;
    if case.phase != "Pending" {
        let status = json!({"status": {"phase": case.phase}});
        call(client, "PATCH", &format!("{pod}/status"), &status).await?;
    }
    let seconds = match case.deletion {
        Deletion::None => return Ok(()),
        Deletion::Over => 0,
        Deletion::Begun => 3600,
    };
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": seconds});
    call(client, "DELETE", &pod, &options).await
}

fn daemon_set() -> Value {
    let labels = json!({"app": "agent"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "testbed/pause:1"}]},
            },
        },
    })
}

async fn call(client: &Client, method: &str, path: &str, body: &Value) -> Result<(), kube::Error> {
    let kind = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder().method(method).uri(path);
    let request = request
        .header("content-type", kind)
        .body(body.to_string().into_bytes());
    client.request::<Value>(request.unwrap()).await.map(|_| ())
}
