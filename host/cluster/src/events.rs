//! Kubernetes Events about the node, its pods and the budgets that block them, as `kubectl describe` shows them. A
//! repetition increases the count of the existing Event.

use scupper_engine::{Controller, PodRef, Time};
use serde::Deserialize;
use serde_json::{Value, json};

use super::event_cache::{CachedEvent, EventKey};
use super::transport::{Fault, cut, escaped};
use super::wire::{MetaOnly, micros, moment};
use super::write::Merge;
use super::{Cluster, WriteError};

/// The severity of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Normal operation.
    Normal,
    /// The operator should look at it.
    Warning,
}

/// A Kubernetes Event about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesEvent {
    /// The regarded node.
    pub node: String,
    /// Normal or Warning.
    pub severity: Severity,
    /// The reason, one CamelCase word.
    pub reason: String,
    /// The action, one CamelCase word.
    pub action: String,
    /// The note for users, cut after 1024 bytes. A repeated Event keeps its first note.
    pub note: String,
    /// Describes a repetition. `None`: it happened once, just now, and equals any Event with the same content.
    pub series: Option<Series>,
}

impl KubernetesEvent {
    /// What happened once, just now, by the action `Drain`.
    pub fn of_node(
        node: &str,
        severity: Severity,
        reason: impl Into<String>,
        note: impl Into<String>,
    ) -> Self {
        Self {
            node: node.to_owned(),
            severity,
            reason: reason.into(),
            action: "Drain".to_owned(),
            note: note.into(),
            series: None,
        }
    }
}

/// A repetition of which not every occurrence is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Events of one reason about one object are equal if their keys are, whatever their notes.
    pub key: String,
    /// The number of occurrences since the last report.
    pub times: u32,
    /// The time of the last occurrence.
    pub last: Time,
}

/// The API server's limit for a note.
const MAX_NOTE: usize = 1024;
const MAX_WORD: usize = 128;

/// The namespace of Events about objects without one.
const NAMESPACE: &str = "default";

impl Severity {
    /// Returns `Warning` if true, else `Normal`.
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
    /// Emits a Kubernetes Event about a node: a new one, or a repetition.
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

    /// Emits a Kubernetes Event about a pod of the event's node: a new one, or a repetition.
    pub async fn emit_about_pod(&self, event: &KubernetesEvent, pod: &PodRef) -> Result<(), WriteError> {
        self.emit_about(event, &EventSubject::pod(pod)).await
    }

    /// Emits a Kubernetes Event about a budget that blocks this pod of the event's node: a new one, or a repetition.
    pub async fn emit_about_budget(
        &self,
        event: &KubernetesEvent,
        budget: &str,
        pod: &PodRef,
    ) -> Result<(), WriteError> {
        let namespace = &pod.namespace;
        // `kubectl describe` finds it by the UID. A budget that no watch has shown is found by its name.
        let uid = self.budget_uid(namespace, budget).unwrap_or_default();
        let about = EventSubject {
            namespace,
            name: budget,
            uid: &uid,
            regarding: reference("policy/v1", "PodDisruptionBudget", namespace, budget, &uid),
            words: format!("disruption budget {namespace}/{budget}"),
            related: Some(pod_to_wire(pod)),
        };
        self.emit_about(event, &about).await
    }

    /// Emits the Kubernetes Event of this name about a controller of the pod, or about a pod without one, unless it is there:
    /// another process may have emitted it. Returns when that was; `None`: it was not there.
    pub async fn emit_once(
        &self,
        event: &KubernetesEvent,
        name: &str,
        controller: Option<&Controller>,
        pod: &PodRef,
    ) -> Result<Option<Time>, WriteError> {
        let about = match controller {
            Some(controller) => EventSubject::controller(&pod.namespace, controller),
            None => EventSubject::pod(pod),
        };
        let path = events(about.namespace);
        let metadata = json!({"name": name, "namespace": about.namespace});
        let wire = to_wire(event, metadata, &about, self.now());
        let emitted = match self.create::<EmittedEvent>(&path, &wire).await {
            // A patch that changes nothing shows the Event to those who may not read any.
            Err(Fault::Refused(409, _)) => {
                let path = format!("{path}/{}", escaped(name));
                let nothing = json!({});
                let found = self.patch::<EmittedEvent>(&path, Merge::Json, &nothing);
                found.await.map(|found| found.event_time)
            }
            created => created.map(|_| None),
        };
        emitted.map_err(|fault| fault.write(&format!("emit an Event about {}", about.words)))
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
        let metadata = json!({"generateName": format!("{}-", about.name), "namespace": about.namespace});
        let mut wire = to_wire(event, metadata, about, last);
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

    /// Increases the count of an Event. Returns false if it is gone: Events expire, in most clusters after an hour.
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

/// The regarded object of an Event.
struct EventSubject<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    regarding: Value,
    /// Its description for users.
    words: String,
    /// A related object.
    related: Option<Value>,
}

/// What is read of an Event.
#[derive(Deserialize)]
struct EmittedEvent {
    #[serde(default, rename = "eventTime", deserialize_with = "moment")]
    event_time: Option<Time>,
}

impl<'a> EventSubject<'a> {
    fn pod(pod: &'a PodRef) -> Self {
        let PodRef { namespace, name, uid } = pod;
        Self {
            namespace,
            name,
            uid: uid.as_str(),
            regarding: pod_to_wire(pod),
            words: format!("pod {pod}"),
            related: None,
        }
    }

    fn controller(namespace: &'a str, controller: &'a Controller) -> Self {
        let Controller {
            api_version,
            kind,
            name,
            uid,
            ..
        } = controller;
        Self {
            namespace,
            name,
            uid: uid.as_str(),
            regarding: reference(api_version, kind, namespace, name, uid.as_str()),
            words: format!("{kind} {namespace}/{name}"),
            related: None,
        }
    }
}

fn pod_to_wire(PodRef { namespace, name, uid }: &PodRef) -> Value {
    reference("v1", "Pod", namespace, name, uid.as_str())
}

/// What an Event is about, as `kubectl describe` finds it.
fn reference(api_version: &str, kind: &str, namespace: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "uid": uid})
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

/// The series of an Event. The API accepts one from a count of two on.
fn series(count: u32, last: Time) -> Value {
    json!({"count": count, "lastObservedTime": micros(last)})
}

fn to_wire(event: &KubernetesEvent, metadata: Value, about: &EventSubject<'_>, now: Time) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": metadata,
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
