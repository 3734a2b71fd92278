//! Reads and changes the fields of a lifecycle event that matter to a kubelet.

use jiff::Timestamp;
use kube::api::DynamicObject;
use scupper_contract::FINALIZER;
use serde_json::{Value, json};

pub(super) fn name(event: &DynamicObject) -> &str {
    event.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn uid(event: &DynamicObject) -> String {
    event.metadata.uid.clone().unwrap_or_default()
}

/// The claim status; empty is Pending.
pub(super) fn claim(event: &DynamicObject) -> &str {
    match event.data.pointer("/status/claimStatus").and_then(Value::as_str) {
        None | Some("") => "Pending",
        Some(status) => status,
    }
}

/// The driver that an event was claimed for, in either spelling.
pub(super) fn driver(event: &DynamicObject) -> &str {
    let driver = event.data.pointer("/status/driver");
    driver
        .and_then(|driver| driver.as_str().or_else(|| driver.get("name")?.as_str()))
        .unwrap_or_default()
}

pub(super) fn deadline(event: &DynamicObject) -> Option<Timestamp> {
    event
        .data
        .pointer("/status/sla")
        .and_then(Value::as_str)?
        .parse()
        .ok()
}

pub(super) fn transition_name(event: &DynamicObject) -> &str {
    event
        .data
        .pointer("/spec/transitionName")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Sets fields of the status, leaving the others.
pub(super) fn set_status(event: &mut DynamicObject, fields: &[(&str, Value)]) {
    let Some(object) = event.data.as_object_mut() else {
        return;
    };
    let status = object.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        for (field, value) in fields {
            status.insert((*field).to_owned(), value.clone());
        }
    }
}

/// Whether the event has the finalizer of a kubelet's claim.
pub(super) fn is_held(event: &DynamicObject) -> bool {
    event
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == FINALIZER)
}

/// Adds the finalizer; false if it is already set.
pub(super) fn hold(event: &mut DynamicObject) -> bool {
    let add = !is_held(event);
    if add {
        event
            .metadata
            .finalizers
            .get_or_insert_default()
            .push(FINALIZER.to_owned());
    }
    add
}

/// Removes the finalizer; false if it is not set.
pub(super) fn release(event: &mut DynamicObject) -> bool {
    let held = is_held(event);
    event
        .metadata
        .finalizers
        .iter_mut()
        .for_each(|finalizers| finalizers.retain(|name| name != FINALIZER));
    held
}

/// A time as the API writes it: truncated to whole seconds.
pub(super) fn seconds(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
