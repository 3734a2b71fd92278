//! Merges our conditions into those of a request.

use scupper_api::RequestCondition;
use scupper_engine::Time;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::wire::{nullable, seconds};

/// What a write reads of a request: the rest may be large.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WithConditions {
    pub(super) metadata: Versions,
    #[serde(deserialize_with = "nullable")]
    pub(super) status: Conditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Versions {
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) generation: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Conditions {
    pub(super) conditions: Value,
}

/// All conditions with these set; `None`: they are so already. Conditions of other types, and fields that we do not know,
/// stay as they are.
pub(super) fn merged(
    old: Value,
    generation: Option<i64>,
    wanted: &[RequestCondition],
    now: Time,
) -> Option<Vec<Value>> {
    let generation = generation.map(Value::from);
    let mut conditions = match old {
        Value::Array(conditions) => conditions,
        _ => Vec::new(),
    };
    let mut changed = false;
    for condition in wanted {
        let place = conditions
            .iter_mut()
            .find(|old| text(old, "type") == condition.kind);
        match place {
            Some(old) if is_as_wanted(old, condition) => {}
            Some(old) => {
                changed = true;
                set(old, condition, generation.as_ref(), now);
            }
            None => {
                changed = true;
                let mut new = json!({"type": condition.kind});
                set(&mut new, condition, generation.as_ref(), now);
                conditions.push(new);
            }
        }
    }
    changed.then_some(conditions)
}

fn is_as_wanted(old: &Value, wanted: &RequestCondition) -> bool {
    let given = [
        ("status", wanted.status_text()),
        ("reason", &wanted.reason),
        ("message", &wanted.message),
    ];
    given.into_iter().all(|(key, value)| text(old, key) == value)
}

fn set(condition: &mut Value, wanted: &RequestCondition, generation: Option<&Value>, now: Time) {
    let is_transition = text(condition, "status") != wanted.status_text();
    let mut fields = match condition.take() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("status", wanted.status_text().into());
    put("reason", wanted.reason.as_str().into());
    put("message", wanted.message.as_str().into());
    if let Some(generation) = generation {
        put("observedGeneration", generation.clone());
    }
    if is_transition {
        put("lastTransitionTime", seconds(now).into());
    }
    *condition = Value::Object(fields);
}

fn text<'a>(condition: &'a Value, key: &str) -> &'a str {
    condition.get(key).and_then(Value::as_str).unwrap_or_default()
}
