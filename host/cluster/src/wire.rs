//! The common parts of API objects, reduced to the fields that the driver needs.
//!
//! These types are tolerant (null or missing fields are empty) because bookmarks carry half-empty objects, and small
//! because a node's pods stay in memory during its drain.

use std::collections::BTreeMap;

use jiff::Timestamp;
use scupper_engine::Time;
use serde::{Deserialize, Deserializer};

use super::transport::cut;

/// The most bytes of a condition's message.
const LONGEST_MESSAGE: usize = 4 << 10;

/// A map of labels or annotations.
pub(super) type Texts = BTreeMap<String, String>;

/// The annotation of `kubectl apply`: a copy of the whole object, which the driver does not need.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// `metadata`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) namespace: String,
    pub(super) uid: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) resource_version: String,
    pub(super) generation: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    pub(super) labels: Texts,
    #[serde(deserialize_with = "nullable")]
    pub(super) annotations: Texts,
    #[serde(deserialize_with = "nullable")]
    pub(super) owner_references: Vec<Owner>,
    #[serde(deserialize_with = "nullable")]
    pub(super) finalizers: Vec<String>,
    #[serde(deserialize_with = "moment")]
    pub(super) creation_timestamp: Option<Time>,
    #[serde(deserialize_with = "moment")]
    pub(super) deletion_timestamp: Option<Time>,
    pub(super) deletion_grace_period_seconds: Option<i64>,
}

/// One of `metadata.ownerReferences`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Owner {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) controller: Option<bool>,
}

/// One of `status.conditions`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) reason: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) message: String,
    #[serde(deserialize_with = "moment")]
    pub(super) last_transition_time: Option<Time>,
    /// Only conditions of nodes have it.
    #[serde(deserialize_with = "moment")]
    pub(super) last_heartbeat_time: Option<Time>,
}

/// The metadata of any object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetaOnly {
    pub(super) metadata: Meta,
}

/// A page of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub(super) struct Page<T> {
    #[serde(default)]
    pub(super) metadata: PageMeta,
    #[serde(default = "Vec::new", deserialize_with = "nullable")]
    pub(super) items: Vec<T>,
}

/// `metadata` of a list
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PageMeta {
    #[serde(deserialize_with = "nullable")]
    pub(super) resource_version: String,
    #[serde(rename = "continue", deserialize_with = "nullable")]
    pub(super) continue_token: String,
}

/// An object type that a watch can follow.
pub(super) trait Object {
    /// Its metadata.
    fn meta(&self) -> &Meta;
}

impl Object for MetaOnly {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Condition {
    /// Converts to the engine's type.
    pub(super) fn into_engine(self) -> scupper_engine::Condition {
        let Self {
            kind,
            status,
            reason,
            message,
            last_transition_time,
            last_heartbeat_time: _,
        } = self;
        scupper_engine::Condition {
            kind,
            status,
            reason,
            message: cut(&message, LONGEST_MESSAGE).to_owned(),
            since: last_transition_time,
        }
    }
}

impl Meta {
    /// Without what other programs write into it.
    pub(super) fn identity(self) -> Self {
        Self {
            labels: Texts::new(),
            annotations: Texts::new(),
            owner_references: Vec::new(),
            finalizers: Vec::new(),
            ..self
        }
    }
}

/// The most bytes of one label or annotation of an object that is not the driver's own node.
const LONGEST_TEXT: usize = 16 << 10;

/// The same of all its labels, or annotations, together.
const MOST_TEXTS: usize = 64 << 10;

/// Removes the annotations that the driver does not need, and those that are too large to keep for each of many objects.
/// An API server accepts 256 KiB of annotations, and any number of labels.
pub(super) fn bounded(texts: Texts) -> Texts {
    let mut left = MOST_TEXTS;
    let mut texts = trimmed(texts);
    texts.retain(|key, value| {
        let size = key.len().saturating_add(value.len());
        let fits = size <= LONGEST_TEXT.min(left);
        match fits {
            true => left -= size,
            false => tracing::debug!(key, size, "a label or an annotation is too large to keep"),
        }
        fits
    });
    texts
}

/// Removes the annotations that the driver does not need.
pub(super) fn trimmed(mut annotations: Texts) -> Texts {
    annotations.remove(LAST_APPLIED);
    annotations
}

/// Reads `null` as the type's default.
pub(super) fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Parses an RFC 3339 time. Times before 1970 count as its start.
pub(super) fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| parse_moment(&text).map_err(serde::de::Error::custom))
        .transpose()
}

/// Parses an RFC 3339 time.
pub(super) fn parse_moment(text: &str) -> Result<Time, jiff::Error> {
    let moment: Timestamp = text.parse()?;
    Ok(Time::from_millis(
        u64::try_from(moment.as_millisecond()).unwrap_or(0),
    ))
}

/// Formats a time for the API in whole seconds.
pub(super) fn seconds(time: Time) -> String {
    stamp(time).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats a time for the API fields with microseconds.
pub(super) fn micros(time: Time) -> String {
    stamp(time).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn stamp(time: Time) -> Timestamp {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
