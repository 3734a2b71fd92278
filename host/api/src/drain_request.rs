//! DrainRequests: what they say, and how they are answered.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{NamedPods, Time};
use serde::{Deserialize, Serialize};

/// Identifies one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DrainRequestRef {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
}

/// One condition to set in the status of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCondition {
    /// `type`
    pub kind: String,
    /// `status`: `True` or `False`.
    pub status: bool,
    /// `reason`: one CamelCase word.
    pub reason: String,
    /// `message`, for people.
    pub message: String,
}

/// The fields of a DrainRequest. Those that are missing or of the wrong type are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRequestFields {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// `metadata.creationTimestamp`
    pub created: Option<Time>,
    /// `spec.checkName`
    pub check_name: String,
    /// `spec.errorCode`
    pub error_codes: Vec<String>,
    /// `spec.recommendedAction`
    pub recommended_action: String,
    /// `spec.healthEventID`
    pub health_event_id: String,
    /// `spec.reason`
    pub reason: String,
    /// `spec.entitiesImpacted`
    pub entities: BTreeSet<Entity>,
    /// `spec.metadata`
    pub metadata: BTreeMap<String, String>,
    /// `spec.podsToDrain`
    pub pods_to_drain: NamedPods,
}

/// Something that is affected, such as a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entity {
    /// `type`
    pub kind: String,
    /// `value`
    pub value: String,
}

impl RequestCondition {
    /// `True` or `False`.
    pub const fn status_text(&self) -> &'static str {
        if self.status { "True" } else { "False" }
    }
}

impl DrainRequestFields {
    /// Whether a policy would plan the same for both: check, error codes, action and entities are equal.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        self.check_name == other.check_name
            && self.error_codes == other.error_codes
            && self.recommended_action == other.recommended_action
            && self.entities == other.entities
    }

    /// The total size of its texts in bytes.
    pub fn bytes(&self) -> usize {
        let maps = [&self.labels, &self.annotations, &self.metadata];
        let in_maps = maps.into_iter().flatten().flat_map(|(key, value)| [key, value]);
        let names = self.pods_to_drain.iter().flat_map(|(namespace, names)| {
            // A policy gets the namespace with each name.
            names.iter().flat_map(move |name| [namespace, name])
        });
        let entities = self
            .entities
            .iter()
            .flat_map(|entity| [&entity.kind, &entity.value]);
        let single = [
            &self.namespace,
            &self.name,
            &self.uid,
            &self.check_name,
            &self.recommended_action,
            &self.health_event_id,
            &self.reason,
        ];
        let all = in_maps
            .chain(names)
            .chain(entities)
            .chain(single)
            .chain(&self.error_codes);
        all.map(String::len).sum()
    }
}
