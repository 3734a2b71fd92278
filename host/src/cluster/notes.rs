//! Kubernetes Events about the node, as `kubectl describe node` shows them.

use scupper_engine::Uid;
use serde_json::{Value, json};

use super::transport::cut;
use super::wire::{MetaOnly, micros};
use super::{Cluster, WriteError};

/// Whether somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

/// A Kubernetes Event about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesEvent {
    /// The node it is about.
    pub node: String,
    /// The node's UID, when it is known.
    pub node_uid: Option<Uid>,
    /// Normal or Warning.
    pub severity: Severity,
    /// One CamelCase word: why.
    pub reason: String,
    /// One CamelCase word: what was done.
    pub action: String,
    /// For people; cut after 1024 bytes.
    pub note: String,
}

/// What the API server takes.
const MAX_NOTE: usize = 1024;
const MAX_WORD: usize = 128;

/// Events about what has no namespace live here.
const NAMESPACE: &str = "default";

impl Severity {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Cluster {
    /// Emits a Kubernetes Event about a node.
    pub async fn emit(&self, event: &KubernetesEvent) -> Result<(), WriteError> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events");
        let created = self
            .create::<MetaOnly>(&path, &to_wire(event, &micros(self.now())))
            .await;
        created
            .map(|_| ())
            .map_err(|fault| fault.write(&format!("emit an Event about node {}", event.node)))
    }
}

fn to_wire(event: &KubernetesEvent, now: &str) -> Value {
    let mut regarding = json!({"apiVersion": "v1", "kind": "Node", "name": event.node});
    if let (Some(uid), Some(regarding)) = (&event.node_uid, regarding.as_object_mut()) {
        regarding.insert("uid".to_owned(), json!(uid.0));
    }
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{}-", event.node), "namespace": NAMESPACE},
        "eventTime": now,
        "type": event.severity.as_str(),
        "reason": cut(&event.reason, MAX_WORD),
        "action": cut(&event.action, MAX_WORD),
        "note": cut(&event.note, MAX_NOTE),
        "regarding": regarding,
        "reportingController": "scupper.dev/driver",
        "reportingInstance": cut(&event.node, MAX_WORD),
    })
}
