//! The fields of a request, whatever types they have.

use scupper_api::{DrainRequestFields, Entity};
use scupper_engine::NamedPods;
use serde_json::{Map, Value};

use super::super::wire::{Meta, Texts};

pub(super) fn fields(meta: &Meta, spec: &Value, pods: NamedPods) -> DrainRequestFields {
    let of_spec = |key: &str| spec.get(key).and_then(text).unwrap_or_default();
    let list = |key: &str| spec.get(key).and_then(Value::as_array).into_iter().flatten();
    let map = |key: &str| spec.get(key).and_then(Value::as_object);
    DrainRequestFields {
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        labels: meta.labels.clone(),
        annotations: meta.annotations.clone(),
        created: meta.creation_timestamp,
        check_name: of_spec("checkName"),
        error_codes: list("errorCode").filter_map(text).collect(),
        recommended_action: of_spec("recommendedAction"),
        health_event_id: of_spec("healthEventID"),
        reason: of_spec("reason"),
        entities: list("entitiesImpacted").filter_map(entity).collect(),
        metadata: map("metadata").map(texts).unwrap_or_default(),
        pods_to_drain: pods,
    }
}

/// One with only a type or only a value still says that something is affected.
fn entity(value: &Value) -> Option<Entity> {
    let part = |key: &str| value.get(key).and_then(text);
    let (kind, value) = (part("type"), part("value"));
    (kind.is_some() || value.is_some()).then(|| Entity {
        kind: kind.unwrap_or_default(),
        value: value.unwrap_or_default(),
    })
}

fn texts(map: &Map<String, Value>) -> Texts {
    let entry = |(key, value): (&String, &Value)| Some((key.clone(), text(value)?));
    map.iter().filter_map(entry).collect()
}

/// A template that forgets quotes writes numbers, such as the code `48` or the GPU `0`.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
