//! Converts LifecycleEvents and LifecycleTransitions between the API's form and ours.

use scupper_engine::{Time, Uid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::go_duration;
use super::wire::{Meta, Object, moment, nullable};
use super::{FLAGS_ANNOTATION, LifecycleEvent, LifecycleTransition, TransitionNodes};

/// The supported version.
pub(super) const VERSION: &str = "v1alpha1";

/// A LifecycleEvent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireEvent {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: EventSpec,
    #[serde(deserialize_with = "nullable")]
    status: EventStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventSpec {
    transition_name: String,
    binding_node: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventStatus {
    #[serde(deserialize_with = "nullable")]
    claim_status: String,
    driver: Option<WireDriver>,
    #[serde(deserialize_with = "moment")]
    sla: Option<Time>,
}

/// The prototype writes a string, newer versions an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum WireDriver {
    Name(String),
    Object {
        #[serde(default)]
        name: String,
    },
}

/// A LifecycleTransition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireTransition {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: TransitionSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TransitionSpec {
    start: String,
    end: String,
    node_name: Option<String>,
    all_nodes: Option<bool>,
    sla: Option<String>,
    driver: String,
}

impl Object for WireEvent {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Object for WireTransition {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl WireEvent {
    /// Converts to the edge's type.
    pub(super) fn into_event(self) -> LifecycleEvent {
        let Self {
            metadata: mut meta,
            spec,
            status,
        } = self;
        LifecycleEvent {
            name: meta.name,
            uid: Uid(meta.uid),
            created: meta.creation_timestamp,
            transition_name: spec.transition_name,
            binding_node: spec.binding_node,
            claim_status: status.claim_status,
            driver: match status.driver {
                None => String::new(),
                Some(WireDriver::Name(name) | WireDriver::Object { name }) => name,
            },
            sla: status.sla,
            deleting: meta.deletion_timestamp.is_some(),
            flags: meta.annotations.remove(FLAGS_ANNOTATION),
        }
    }
}

impl WireTransition {
    /// Converts to the edge's type. An unreadable time limit counts as none.
    pub(super) fn into_transition(self) -> LifecycleTransition {
        let Self { metadata: meta, spec } = self;
        let scope = match (spec.all_nodes, spec.node_name) {
            (Some(true), _) => TransitionNodes::AllNodes,
            (_, Some(node)) => TransitionNodes::Node(node),
            (_, None) => TransitionNodes::Selector,
        };
        let sla = spec.sla.and_then(|text| {
            let sla = go_duration::parse(&text);
            if sla.is_none() {
                tracing::warn!(transition = meta.name, sla = text, "invalid duration in sla");
            }
            sla
        });
        LifecycleTransition {
            name: meta.name,
            start: spec.start,
            end: spec.end,
            scope,
            sla,
            driver: spec.driver,
        }
    }
}

/// Returns a transition to create. The driver never creates transitions with a node selector.
pub(super) fn to_create(transition: &LifecycleTransition, group: &str) -> Option<Value> {
    let mut spec = mutable(transition);
    let fields = spec.as_object_mut()?;
    match &transition.scope {
        TransitionNodes::AllNodes => fields.insert("allNodes".to_owned(), json!(true)),
        TransitionNodes::Node(node) => fields.insert("nodeName".to_owned(), json!(node)),
        TransitionNodes::Selector => return None,
    };
    if transition.sla.is_none() {
        fields.remove("sla");
    }
    Some(json!({
        "apiVersion": format!("{group}/{VERSION}"),
        "kind": "LifecycleTransition",
        "metadata": {"name": transition.name},
        "spec": spec,
    }))
}

/// Returns the mutable part of `spec`, as a merge patch.
pub(super) fn mutable(transition: &LifecycleTransition) -> Value {
    json!({
        "start": transition.start,
        "end": transition.end,
        "driver": transition.driver,
        "sla": transition.sla.map(go_duration::format),
    })
}
