//! Validation of objects.

use serde_json::Value;

use super::failure::{Cause, Failure};
use super::fields::{items, text};
use super::kinds::Kind;

/// Refuses an invalid object. `old` is the object that it replaces.
pub(crate) fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Result<(), Failure> {
    let name = text(object, "/metadata/name");
    let mut causes = Vec::new();
    if name.is_empty() {
        causes.push(Cause::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if !is_subdomain(name) {
        causes.push(Cause::invalid("metadata.name", &name.into(), SUBDOMAIN));
    }
    if annotations(object) > ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS));
    }
    match kind.kind.as_str() {
        "LifecycleEvent" => event(object, old, &mut causes),
        "Event" if kind.group == "events.k8s.io" => {
            series(object, &mut causes);
            match old {
                None => reported(object, &mut causes),
                Some(old) => repeated_event(object, old, &mut causes),
            }
        }
        "LifecycleTransition" => transition(object, old, &mut causes),
        _ => {}
    }
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Failure::invalid(kind, name, &causes))
    }
}

/// Bytes of all annotations of an object, their keys included.
const ANNOTATIONS: usize = 256 * 1024;

fn annotations(object: &Value) -> usize {
    let all = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let sizes = all.into_iter().flatten();
    let sizes = sizes.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len));
    sizes.sum()
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const IMMUTABLE: &str = "field is immutable";
const ONE_OF_THREE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required";

fn is_subdomain(name: &str) -> bool {
    name.len() <= 253
        && name.split('.').all(|part| {
            !part.is_empty()
                && !part.starts_with('-')
                && !part.ends_with('-')
                && part
                    .bytes()
                    .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-')
        })
}

fn required(object: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    for field in fields {
        if text(object, &pointer(field)).is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
}

fn immutable(object: &Value, old: Option<&Value>, fields: &[&str], causes: &mut Vec<Cause>) {
    let Some(old) = old else { return };
    for field in fields {
        let (now, then) = (object.pointer(&pointer(field)), old.pointer(&pointer(field)));
        if now != then {
            causes.push(Cause::invalid(field, now.unwrap_or(&Value::Null), IMMUTABLE));
        }
    }
}

fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

fn event(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    required(object, &["spec.transitionName", "spec.bindingNode"], causes);
    let node = text(object, "/spec/bindingNode");
    if !node.is_empty() && !is_subdomain(node) {
        causes.push(Cause::invalid("spec.bindingNode", &node.into(), SUBDOMAIN));
    }
    immutable(object, old, &["spec.transitionName", "spec.bindingNode"], causes);
}

/// The longest words of an Event, and its longest note.
const WORD: usize = 128;
const NOTE: usize = 1024;

/// An Event of `events.k8s.io`: the older API in the core requires none of this.
fn reported(object: &Value, causes: &mut Vec<Cause>) {
    for field in [
        "reportingController",
        "reportingInstance",
        "action",
        "reason",
        "eventTime",
    ] {
        let value = text(object, &pointer(field));
        if value.is_empty() {
            causes.push(Cause::required(field, ""));
        } else if value.len() > WORD {
            causes.push(Cause::invalid(
                field,
                &"".into(),
                "can have at most 128 characters",
            ));
        }
    }
    if text(object, "/note").len() > NOTE {
        causes.push(Cause::invalid(
            "note",
            &"".into(),
            "can have at most 1024 characters",
        ));
    }
    let severity = text(object, "/type");
    if !matches!(severity, "Normal" | "Warning") {
        causes.push(Cause::invalid(
            "type",
            &"".into(),
            &format!("has invalid value: {severity}"),
        ));
    }
    let (about, home) = (
        text(object, "/regarding/namespace"),
        text(object, "/metadata/namespace"),
    );
    if about != home && !(about.is_empty() && matches!(home, "default" | "kube-system")) {
        let why = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", &about.into(), why));
    }
}

/// Only the series of an Event may change. The response uses the core's field names.
fn repeated_event(object: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for (field, name) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let (now, then) = (object.get(field), old.get(field));
        if now != then {
            causes.push(Cause::invalid(name, now.unwrap_or(&Value::Null), IMMUTABLE));
        }
    }
}

/// The series of an Event.
fn series(object: &Value, causes: &mut Vec<Cause>) {
    let Some(series) = object.get("series").filter(|series| !series.is_null()) else {
        return;
    };
    if series.get("count").and_then(Value::as_u64).unwrap_or_default() < 2 {
        causes.push(Cause::invalid("series.count", &"".into(), "should be at least 2"));
    }
    if text(series, "/lastObservedTime").is_empty() {
        causes.push(Cause::required("series.lastObservedTime", ""));
    }
}

fn transition(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    required(object, &["spec.start", "spec.end", "spec.driver"], causes);
    let mut set = 0;
    if let Some(name) = object.pointer("/spec/nodeName").and_then(Value::as_str) {
        if name.is_empty() {
            let why = "must be either unset or set to a non-empty string";
            causes.push(Cause::invalid("spec.nodeName", &"".into(), why));
        } else {
            set += 1;
            if !is_subdomain(name) {
                causes.push(Cause::invalid("spec.nodeName", &name.into(), SUBDOMAIN));
            }
        }
    }
    if let Some(selector) = object.pointer("/spec/nodeSelector").filter(|it| !it.is_null()) {
        set += 1;
        let terms = items(selector, "/nodeSelectorTerms");
        if terms.len() != 1 {
            let why = "must have exactly one node selector term";
            causes.push(Cause::invalid(
                "spec.nodeSelector.nodeSelectorTerms",
                &terms.into(),
                why,
            ));
        }
    }
    match object.pointer("/spec/allNodes").and_then(Value::as_bool) {
        Some(true) => set += 1,
        Some(false) => {
            causes.push(Cause::invalid(
                "spec.allNodes",
                &false.into(),
                "must be either unset or set to true",
            ));
        }
        None => {}
    }
    match set {
        0 => causes.push(Cause::required("spec", ONE_OF_THREE)),
        1 => {}
        _ => causes.push(Cause::invalid(
            "spec",
            object.get("spec").unwrap_or(&Value::Null),
            ONE_OF_THREE,
        )),
    }
    immutable(
        object,
        old,
        &["spec.nodeName", "spec.nodeSelector", "spec.allNodes"],
        causes,
    );
}
