//! Reads and writes fields of JSON objects by pointer.

use serde_json::{Map, Value};

/// The text at `pointer`, or nothing.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The whole number at `pointer`.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// The items at `pointer`; none if there is no list.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Sets `value` at `pointer` and creates missing maps. The pointer has only keys: no list positions, no escapes.
pub(crate) fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for key in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Some(map) = at.as_object_mut() else { return };
        at = map.entry(key).or_insert(Value::Null);
    }
    *at = value;
}

/// Removes the field at `pointer`.
pub(crate) fn unset(object: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        return;
    };
    if let Some(map) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
        map.remove(key);
    }
}

/// Copies the field at `pointer` from `from`; removes it if it is absent there.
pub(crate) fn copy(object: &mut Value, from: &Value, pointer: &str) {
    match from.pointer(pointer) {
        Some(value) => set(object, pointer, value.clone()),
        None => unset(object, pointer),
    }
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(key)?.as_str()
}

/// The value of a label.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(key)?.as_str()
}

/// The condition of that type in `status.conditions`.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, "/status/conditions")
        .iter()
        .find(|it| text(it, "/type") == kind)
}

/// Sets a condition in `status.conditions`, replacing that of its type. The transition time stays if the status does.
pub(crate) fn set_condition(object: &mut Value, mut condition: Value, now: &str) {
    let old = self::condition(object, text(&condition, "/type"));
    let since = old
        .filter(|old| text(old, "/status") == text(&condition, "/status"))
        .map_or(now, |old| text(old, "/lastTransitionTime"));
    set(&mut condition, "/lastTransitionTime", since.into());
    let mut all: Vec<Value> = items(object, "/status/conditions").to_vec();
    match all
        .iter_mut()
        .find(|it| text(it, "/type") == text(&condition, "/type"))
    {
        Some(place) => *place = condition,
        None => all.push(condition),
    }
    set(object, "/status/conditions", Value::Array(all));
}
