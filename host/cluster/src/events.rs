//! Kubernetes Events about the node, its pods and the budgets that block them, as `kubectl describe` shows them. What happens again is counted up on the
//! Event that is there.

use scupper_engine::{PodRef, Time};
use serde_json::{Value, json};

use super::event_cache::{CachedEvent, EventKey};
use super::transport::{cut, escaped};
use super::wire::{MetaOnly, micros};
use super::write::Merge;
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
    /// Normal or Warning.
    pub severity: Severity,
    /// One CamelCase word: why.
    pub reason: String,
    /// One CamelCase word: what was done.
    pub action: String,
    /// For people; cut after 1024 bytes. An Event that is counted up keeps the one it was written with.
    pub note: String,
    /// How often it has happened. `None`: once, just now; and it is the same as another that says the same.
    pub series: Option<Series>,
}

/// Something that happens again and again, of which not each time is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Events of one reason about one object are the same if this is, whatever their notes say.
    pub key: String,
    /// How often it has happened since it was last told.
    pub times: u32,
    /// When it last happened.
    pub last: Time,
}

/// What the API server takes.
const MAX_NOTE: usize = 1024;
const MAX_WORD: usize = 128;

/// Events about what has no namespace live here.
const NAMESPACE: &str = "default";

impl Severity {
    /// Whether somebody should look.
    pub const fn of(warning: bool) -> Self {
        if warning { Self::Warning } else { Self::Normal }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Cluster {
    /// Emits a Kubernetes Event about a node: a new one, or the same once more.
    pub async fn emit(&self, event: &KubernetesEvent) -> Result<(), WriteError> {
        let about = EventSubject {
            namespace: NAMESPACE,
            name: &event.node,
            uid: &event.node,
            // The name for the UID, as kubelets do: without one, `kubectl describe node` does not show it.
            regarding: json!({"apiVersion": "v1", "kind": "Node", "name": event.node, "uid": event.node}),
            words: format!("node {}", event.node),
            related: None,
        };
        self.emit_about(event, &about).await
    }

    /// Emits a Kubernetes Event about a pod of the event's node: a new one, or the same once more.
    pub async fn emit_about_pod(&self, event: &KubernetesEvent, pod: &PodRef) -> Result<(), WriteError> {
        let PodRef { namespace, name, uid } = pod;
        let about = EventSubject {
            namespace,
            name,
            uid: &uid.0,
            regarding: pod_to_wire(pod),
            words: format!("pod {pod}"),
            related: None,
        };
        self.emit_about(event, &about).await
    }

    /// Emits a Kubernetes Event about a budget that blocks this pod of the event's node: a new one, or the same once
    /// more.
    pub async fn emit_about_budget(
        &self,
        event: &KubernetesEvent,
        budget: &str,
        pod: &PodRef,
    ) -> Result<(), WriteError> {
        let namespace = &pod.namespace;
        // `kubectl describe` finds it by the UID. One that no watch has shown goes by its name.
        let uid = self.budget_uid(namespace, budget).unwrap_or_default();
        let about = EventSubject {
            namespace,
            name: budget,
            uid: &uid,
            regarding: json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "namespace": namespace, "name": budget,
                "uid": uid,
            }),
            words: format!("disruption budget {namespace}/{budget}"),
            related: Some(pod_to_wire(pod)),
        };
        self.emit_about(event, &about).await
    }

    async fn emit_about(&self, event: &KubernetesEvent, about: &EventSubject<'_>) -> Result<(), WriteError> {
        let same = event_key(event, about);
        let (times, last) = match &event.series {
            Some(series) => (series.times.max(1), series.last),
            None => (1, self.now()),
        };
        if let Some(CachedEvent { name, count }) = self.event_cache().find(&same) {
            let count = count.saturating_add(times);
            if self.count_up(about, &name, series(count, last)).await? {
                self.event_cache().remember(same, CachedEvent { name, count });
                return Ok(());
            }
            self.event_cache().forget(&same);
        }
        let mut wire = to_wire(event, about, last);
        if let Some(wire) = wire.as_object_mut() {
            if times > 1 {
                wire.insert("series".to_owned(), series(times, last));
            }
            if let Some(related) = &about.related {
                wire.insert("related".to_owned(), related.clone());
            }
        }
        let created = self.create::<MetaOnly>(&events(about.namespace), &wire).await;
        let created =
            created.map_err(|fault| fault.write(&format!("emit an Event about {}", about.words)))?;
        let name = created.metadata.name;
        self.event_cache()
            .remember(same, CachedEvent { name, count: times });
        Ok(())
    }

    /// Whether it was still there: Events expire, after an hour in most clusters.
    async fn count_up(
        &self,
        about: &EventSubject<'_>,
        name: &str,
        series: Value,
    ) -> Result<bool, WriteError> {
        let path = format!("{}/{}", events(about.namespace), escaped(name));
        let patch = json!({ "series": series });
        match self.patch::<MetaOnly>(&path, Merge::Json, &patch).await {
            Ok(_) => Ok(true),
            Err(fault) if fault.is_not_found() => Ok(false),
            Err(fault) => Err(fault.write(&format!("count up an Event about {}", about.words))),
        }
    }
}

/// What an Event is about.
struct EventSubject<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    regarding: Value,
    /// For people.
    words: String,
    /// What else it has to do with.
    related: Option<Value>,
}

fn pod_to_wire(PodRef { namespace, name, uid }: &PodRef) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid.0})
}

fn events(namespace: &str) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{}/events", escaped(namespace))
}

fn event_key(event: &KubernetesEvent, about: &EventSubject<'_>) -> EventKey {
    let apart = event.series.as_ref().map_or(&event.note, |series| &series.key);
    EventKey {
        about: [about.namespace, about.name, about.uid].map(str::to_owned),
        words: [event.severity.as_str(), &event.reason, &event.action, apart].map(str::to_owned),
    }
}

/// The API takes one from twice on.
fn series(count: u32, last: Time) -> Value {
    json!({"count": count, "lastObservedTime": micros(last)})
}

fn to_wire(event: &KubernetesEvent, about: &EventSubject<'_>, now: Time) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{}-", about.name), "namespace": about.namespace},
        "eventTime": micros(now),
        "type": event.severity.as_str(),
        "reason": cut(&event.reason, MAX_WORD),
        "action": cut(&event.action, MAX_WORD),
        "note": cut(&event.note, MAX_NOTE),
        "regarding": about.regarding,
        "reportingController": "scupper.dev/driver",
        "reportingInstance": cut(&event.node, MAX_WORD),
    })
}
