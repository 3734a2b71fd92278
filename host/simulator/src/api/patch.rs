//! Patches: merge, strategic merge, JSON patch, and server-side apply with a single field owner.

use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::fields;
use super::kinds::Kind;

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patch {
    Merge,
    Strategic,
    Json,
    Apply,
}

impl Patch {
    /// From a content type.
    pub(crate) fn parse(kind: &Kind, content_type: &str) -> Result<Self, Failure> {
        let accepted =
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
        let patch = match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Self::Merge,
            "application/json-patch+json" => Self::Json,
            "application/apply-patch+yaml" => Self::Apply,
            "application/strategic-merge-patch+json" if !kind.custom => Self::Strategic,
            _ => {
                let why = format!(
                    "the body of the request was in an unknown format - accepted media types include: {accepted}"
                );
                return Err(Failure::new(415, "UnsupportedMediaType", why));
            }
        };
        Ok(patch)
    }

    /// The object after the patch.
    pub(crate) fn apply(self, object: &Value, patch: &Value) -> Result<Value, Failure> {
        let mut new = object.clone();
        match self {
            Self::Merge => json_patch::merge(&mut new, patch),
            Self::Strategic => strategic(&mut new, patch),
            Self::Apply => {
                let mut patch = patch.clone();
                fields::unset(&mut patch, "/metadata/managedFields");
                strategic(&mut new, &patch);
            }
            Self::Json => {
                let steps: json_patch::Patch = serde_json::from_value(patch.clone())
                    .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
                json_patch::patch(&mut new, &steps).map_err(|_misfit| refused())?;
            }
        }
        Ok(new)
    }
}

/// A JSON patch that does not apply to the object: a real server gives no details.
fn refused() -> Failure {
    let message = "the server rejected our request due to an error in our request";
    Failure::new(422, "Invalid", message).details(json!({}))
}

/// The merge key of a list; `None` for a list that is replaced as a whole.
fn merge_key(field: &str) -> Option<&'static str> {
    match field {
        "conditions" | "addresses" => Some("type"),
        "containers" | "initContainers" | "ephemeralContainers" | "volumes" | "env" | "imagePullSecrets" => {
            Some("name")
        }
        "ownerReferences" => Some("uid"),
        "ports" => Some("containerPort"),
        "podIPs" | "hostAliases" => Some("ip"),
        "volumeMounts" => Some("mountPath"),
        _ => None,
    }
}

/// Merges by the types of the core.
fn strategic(object: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if patch.get("$patch").and_then(Value::as_str) == Some("replace") {
        let mut whole = patch.clone();
        whole.remove("$patch");
        *object = Value::Object(whole);
        return;
    }
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(map) = object.as_object_mut() else { return };
    for (field, value) in patch {
        strategic_field(map, field, value);
    }
}

fn strategic_field(map: &mut Map<String, Value>, field: &str, value: &Value) {
    if let Some(field) = field.strip_prefix("$deleteFromPrimitiveList/") {
        if let (Some(list), Some(out)) = (map.get_mut(field).and_then(Value::as_array_mut), value.as_array())
        {
            list.retain(|it| !out.contains(it));
        }
        return;
    }
    if field.starts_with('$') {
        return;
    }
    match value {
        Value::Null => {
            map.remove(field);
        }
        Value::Object(inner) if inner.get("$patch").and_then(Value::as_str) == Some("delete") => {
            map.remove(field);
        }
        Value::Object(_) => strategic(map.entry(field).or_insert(Value::Null), value),
        Value::Array(entries) if field == "finalizers" => {
            let list = map.entry(field).or_insert_with(|| json!([]));
            for entry in entries {
                if let Some(list) = list.as_array_mut().filter(|list| !list.contains(entry)) {
                    list.push(entry.clone());
                }
            }
        }
        Value::Array(entries) => match merge_key(field) {
            Some(key) => merge_list(map.entry(field).or_insert_with(|| json!([])), entries, key),
            None => {
                map.insert(field.to_owned(), value.clone());
            }
        },
        _ => {
            map.insert(field.to_owned(), value.clone());
        }
    }
}

fn merge_list(list: &mut Value, entries: &[Value], key: &str) {
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    if entries
        .iter()
        .any(|it| it.get("$patch").and_then(Value::as_str) == Some("replace"))
    {
        list.clear();
    }
    for entry in entries {
        let at = list
            .iter()
            .position(|it| it.get(key).is_some() && it.get(key) == entry.get(key));
        match (entry.get("$patch").and_then(Value::as_str), at) {
            (Some("delete"), Some(at)) => {
                list.remove(at);
            }
            (Some(_), _) => {}
            (None, Some(at)) => {
                if let Some(place) = list.get_mut(at) {
                    strategic(place, entry);
                }
            }
            (None, None) => {
                let mut fresh = Value::Null;
                strategic(&mut fresh, entry);
                list.push(fresh);
            }
        }
    }
}
