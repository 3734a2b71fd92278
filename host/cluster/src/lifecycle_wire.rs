//! Converts LifecycleEvents and LifecycleTransitions between the API's form and ours.

use scupper_api::{ClaimStatus, LifecycleEvent, LifecycleTransition, TransitionNodes};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::wire::{Meta, Object, nullable, parse_moment};
use scupper_common::go_duration;

/// The annotation with the drain settings of a LifecycleEvent.
pub const FLAGS_ANNOTATION: &str = "scupper.dev/drain-flags";

/// The supported version.
pub(super) const VERSION: &str = "v1alpha1";

/// A LifecycleEvent. A field of the wrong type is odd text: one that could not be decoded would break the watch of all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireEvent {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: EventSpec,
    #[serde(deserialize_with = "nullable")]
    status: WireStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventSpec {
    #[serde(deserialize_with = "any_text")]
    transition_name: String,
    #[serde(deserialize_with = "any_text")]
    binding_node: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireStatus {
    #[serde(deserialize_with = "any_text")]
    claim_status: String,
    #[serde(deserialize_with = "driver_name")]
    driver: String,
    #[serde(deserialize_with = "any_text")]
    sla: String,
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

/// The longest text that can be the name of something; longer ones are cut.
const NAME_BYTES: usize = 253;

impl WireEvent {
    /// It is bound to this node.
    pub(super) fn is_for(&self, node: &str) -> bool {
        self.spec.binding_node == node
    }

    /// Removes what the driver does not need: strangers create events.
    pub(super) fn trim(&mut self) {
        let Self {
            metadata,
            spec,
            status,
        } = self;
        metadata.labels.clear();
        metadata.owner_references.clear();
        metadata.finalizers.clear();
        metadata.annotations.retain(|key, _| key == FLAGS_ANNOTATION);
        for text in [
            &mut spec.transition_name,
            &mut spec.binding_node,
            &mut status.claim_status,
            &mut status.driver,
            &mut status.sla,
        ] {
            text.truncate(text.floor_char_boundary(NAME_BYTES));
            text.shrink_to_fit();
        }
    }

    /// Converts to the edge's type.
    pub(super) fn into_event(self) -> LifecycleEvent {
        let Self {
            metadata: mut meta,
            spec,
            status,
        } = self;
        let sla = match status.sla.as_str() {
            "" => None,
            text => parse_moment(text)
                .inspect_err(|error| {
                    tracing::warn!(event = meta.name, %error, "invalid time in sla");
                })
                .ok(),
        };
        LifecycleEvent {
            name: meta.name,
            uid: meta.uid,
            created: meta.creation_timestamp,
            deleting: meta.deletion_timestamp.is_some(),
            transition: spec.transition_name,
            node: spec.binding_node,
            claim: ClaimStatus::parse(&status.claim_status),
            driver: Some(status.driver).filter(|driver| !driver.is_empty()),
            sla,
            flags: meta.annotations.remove(FLAGS_ANNOTATION),
        }
    }
}

impl WireTransition {
    /// Whether it belongs to this driver.
    pub(super) fn is_of(&self, driver: &str) -> bool {
        self.spec.driver == driver
    }

    /// Converts to the edge's type. An unreadable time limit counts as none.
    pub(super) fn into_transition(self) -> LifecycleTransition {
        let Self { metadata: meta, spec } = self;
        let nodes = match (spec.all_nodes, spec.node_name) {
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
            driver: spec.driver,
            start: spec.start,
            end: spec.end,
            nodes,
            sla,
        }
    }
}

/// Reads a text; any other value as its JSON.
fn any_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(text_of(Value::deserialize(from)?))
}

/// The prototype writes a text, newer versions an object.
fn driver_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Object(mut fields) => fields.remove("name").map(text_of).unwrap_or_default(),
        other => text_of(other),
    })
}

fn text_of(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Returns a transition to create. The driver never creates transitions with a node selector.
pub(super) fn to_create(transition: &LifecycleTransition, group: &str) -> Option<Value> {
    let mut spec = mutable(transition);
    let fields = spec.as_object_mut()?;
    match &transition.nodes {
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
