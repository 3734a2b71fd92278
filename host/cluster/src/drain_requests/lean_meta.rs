//! The metadata of an object that a stranger may have filled: what the trigger uses, with labels and annotations up to a
//! bound.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::super::bounded::{Bounded, Budget};
use super::super::wire::{Meta, Texts, parse_moment};

/// Decodes metadata; the budget is that of labels and annotations.
pub(super) struct LeanMeta<'a>(pub(super) &'a mut Budget);

impl<'de> DeserializeSeed<'de> for LeanMeta<'_> {
    type Value = Meta;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Meta, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LeanMeta<'_> {
    type Value = Meta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Meta, A::Error> {
        let mut meta = Meta::default();
        let text = |map: &mut A| Ok::<_, A::Error>(map.next_value::<Option<String>>()?.unwrap_or_default());
        let moment = |map: &mut A| match map.next_value::<Option<String>>()? {
            Some(text) => parse_moment(&text).map(Some).map_err(A::Error::custom),
            None => Ok(None),
        };
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => meta.name = text(&mut map)?,
                "namespace" => meta.namespace = text(&mut map)?,
                "uid" => meta.uid = text(&mut map)?,
                "resourceVersion" => meta.resource_version = text(&mut map)?,
                "creationTimestamp" => meta.creation_timestamp = moment(&mut map)?,
                "deletionTimestamp" => meta.deletion_timestamp = moment(&mut map)?,
                "labels" => meta.labels = texts(map.next_value_seed(all(self.0))?),
                "annotations" => meta.annotations = texts(map.next_value_seed(all(self.0))?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(meta)
    }
}

fn all(budget: &mut Budget) -> Bounded<'_> {
    Bounded { budget, keys: None }
}

fn texts(map: Value) -> Texts {
    let Value::Object(map) = map else {
        return Texts::new();
    };
    let text = |(key, value): (String, Value)| match value {
        Value::String(text) => Some((key, text)),
        _ => None,
    };
    map.into_iter().filter_map(text).collect()
}
