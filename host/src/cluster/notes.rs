//! Kubernetes Events about the node and its pods, as `kubectl describe` shows them.

use scupper_engine::{PodRef, Uid};
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
        let mut regarding = json!({"apiVersion": "v1", "kind": "Node", "name": event.node});
        if let (Some(uid), Some(regarding)) = (&event.node_uid, regarding.as_object_mut()) {
            regarding.insert("uid".to_owned(), json!(uid.0));
        }
        let wire = to_wire(event, (&event.node, NAMESPACE), &regarding, &micros(self.now()));
        self.create_event(NAMESPACE, &wire, &format!("node {}", event.node))
            .await
    }

    /// Emits a Kubernetes Event about a pod of the event's node.
    pub async fn emit_about_pod(&self, event: &KubernetesEvent, pod: &PodRef) -> Result<(), WriteError> {
        let PodRef { namespace, name, uid } = pod;
        let regarding =
            json!({"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid.0});
        let wire = to_wire(event, (name, namespace), &regarding, &micros(self.now()));
        self.create_event(namespace, &wire, &format!("pod {pod}")).await
    }

    async fn create_event(&self, namespace: &str, event: &Value, about: &str) -> Result<(), WriteError> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        let created = self.create::<MetaOnly>(&path, event).await;
        created
            .map(|_| ())
            .map_err(|fault| fault.write(&format!("emit an Event about {about}")))
    }
}

fn to_wire(event: &KubernetesEvent, (name, namespace): (&str, &str), regarding: &Value, now: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{name}-"), "namespace": namespace},
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
