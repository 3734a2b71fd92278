//! Creates and updates objects: the fields that the server fills in, keeps and counts, and its refusals.

use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::{Cause, Failure};
use super::fields::{self, text};
use super::kinds::Kind;
use super::table::{Key, Table};
use super::validation;

/// The namespace must exist and must not be terminating.
pub(crate) fn check_namespace(table: &Table, kind: &Kind, key: &Key) -> Result<(), Failure> {
    if !kind.namespaced {
        return Ok(());
    }
    let home = Key {
        resource: "namespaces".to_owned(),
        namespace: String::new(),
        name: key.namespace.clone(),
    };
    let Some(namespace) = table.get(&home) else {
        return match table.kind("namespaces") {
            Some(namespaces) => Err(Failure::not_found(&namespaces, &key.namespace)),
            None => Err(Failure::no_such_path()),
        };
    };
    if text(namespace, "/metadata/deletionTimestamp").is_empty() {
        return Ok(());
    }
    Err(namespace_terminating(kind, &key.name, &key.namespace))
}

/// The refusal of new content in a terminating namespace.
pub(crate) fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Failure {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    Failure::forbidden(kind, name, &why).causes(json!([{"reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"}]))
}

/// Creates an object.
pub(crate) fn create(
    table: &mut Table,
    kind: &Kind,
    namespace: Option<&str>,
    mut object: Value,
    dry: bool,
) -> Result<Arc<Value>, Failure> {
    check_form(kind, &object)?;
    let generated = text(&object, "/metadata/generateName").to_owned();
    if text(&object, "/metadata/name").is_empty() && !generated.is_empty() {
        let uid = table.new_uid();
        let tail = uid.get(15..18).unwrap_or_default();
        let name = format!(
            "{generated}{tail}{}",
            uid.get(uid.len().saturating_sub(2)..).unwrap_or_default()
        );
        fields::set(&mut object, "/metadata/name", name.into());
    }
    place(kind, namespace, &mut object)?;
    let name = text(&object, "/metadata/name").to_owned();
    let key = Key::new(kind, namespace.unwrap_or_default(), &name);
    check_namespace(table, kind, &key)?;
    if table.get(&key).is_some() {
        return Err(Failure::already_exists(kind, &name));
    }
    let uid = table.new_uid();
    prepare_new(table, kind, &uid, &mut object);
    validation::check(kind, &object, None)?;
    if dry {
        return Ok(Arc::new(object));
    }
    Ok(table.put(key, object))
}

/// The body must be of the URL's kind.
pub(crate) fn check_form(kind: &Kind, object: &Value) -> Result<(), Failure> {
    if !object.is_object() {
        return Err(Failure::bad_request(
            "the object provided is unrecognized: it is not a JSON object",
        ));
    }
    let (version, name) = (text(object, "/apiVersion"), text(object, "/kind"));
    if version != kind.api_version() || name != kind.kind {
        let (wanted, got) = (kind.api_version(), kind.kind.as_str());
        let why = format!(
            "the object provided is unrecognized (must be of type {got} of {wanted}, is {name:?} of {version:?})"
        );
        return Err(Failure::bad_request(why));
    }
    Ok(())
}

/// The namespace in the body must be the URL's.
fn place(kind: &Kind, namespace: Option<&str>, object: &mut Value) -> Result<(), Failure> {
    let Some(namespace) = namespace else {
        if kind.namespaced {
            return Err(Failure::method_not_allowed());
        }
        fields::unset(object, "/metadata/namespace");
        return Ok(());
    };
    let said = text(object, "/metadata/namespace");
    if !said.is_empty() && said != namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(why));
    }
    fields::set(object, "/metadata/namespace", namespace.into());
    Ok(())
}

/// The fields that the server sets at creation.
fn prepare_new(table: &Table, kind: &Kind, uid: &str, object: &mut Value) {
    for field in [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generation",
    ] {
        fields::unset(object, &format!("/metadata/{field}"));
    }
    fields::set(object, "/metadata/uid", uid.into());
    fields::set(object, "/metadata/creationTimestamp", table.clock.stamp().into());
    if kind.generation {
        fields::set(object, "/metadata/generation", 1.into());
    }
    match kind.kind.as_str() {
        "LifecycleEvent" => fields::set(object, "/status", json!({"claimStatus": "Pending"})),
        "Namespace" => {
            fields::set(object, "/spec/finalizers", json!(["kubernetes"]));
            fields::set(object, "/status", json!({"phase": "Active"}));
            let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
            let mut labels = object
                .pointer("/metadata/labels")
                .cloned()
                .unwrap_or_else(|| json!({}));
            if let Some(labels) = labels.as_object_mut() {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name);
            }
            fields::set(object, "/metadata/labels", labels);
        }
        "Pod" => prepare_new_pod(object),
        "Node" => {}
        "PodDisruptionBudget" => fields::set(
            object,
            "/status",
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        ),
        _ if kind.status => fields::unset(object, "/status"),
        _ => {}
    }
}

fn prepare_new_pod(object: &mut Value) {
    fields::set(
        object,
        "/status",
        json!({"phase": "Pending", "qosClass": "BestEffort"}),
    );
    for (field, value) in [
        ("/spec/terminationGracePeriodSeconds", json!(30)),
        ("/spec/restartPolicy", json!("Always")),
        ("/spec/serviceAccountName", json!("default")),
        ("/spec/schedulerName", json!("default-scheduler")),
    ] {
        if object.pointer(field).is_none() {
            fields::set(object, field, value);
        }
    }
}

/// Replaces the stored object with `new`, as an update of the main resource or of the status.
pub(crate) fn update(
    table: &mut Table,
    kind: &Kind,
    key: &Key,
    subresource: Option<&str>,
    mut new: Value,
    dry: bool,
) -> Result<Arc<Value>, Failure> {
    let old = table
        .get(key)
        .cloned()
        .ok_or_else(|| Failure::not_found(kind, &key.name))?;
    check_form(kind, &new)?;
    check_identity(kind, key, &old, &new)?;
    if kind.custom && text(&new, "/metadata/resourceVersion").is_empty() {
        let cause = Cause::invalid(
            "metadata.resourceVersion",
            &0.into(),
            "must be specified for an update",
        );
        return Err(Failure::invalid(kind, &key.name, &[cause]));
    }
    keep_system_fields(&mut new, &old);
    if subresource == Some("status") {
        keep_all_but_status(kind, &mut new, &old);
    } else if kind.status {
        fields::copy(&mut new, &old, "/status");
    }
    check_finalizers(kind, key, &old, &new)?;
    validation::check(kind, &new, Some(&old))?;
    if kind.generation && subresource.is_none() && changed_spec(kind, &new, &old) {
        let generation = fields::number(&old, "/metadata/generation").unwrap_or(0) + 1;
        fields::set(&mut new, "/metadata/generation", generation.into());
    }
    fields::copy(&mut new, &old, "/metadata/resourceVersion");
    let ends = !text(&new, "/metadata/deletionTimestamp").is_empty()
        && fields::items(&new, "/metadata/finalizers").is_empty()
        && fields::number(&new, "/metadata/deletionGracePeriodSeconds").unwrap_or(0) == 0
        && (kind.kind != "Namespace" || fields::items(&new, "/spec/finalizers").is_empty());
    if dry || (new == *old && !ends) {
        return Ok(Arc::new(new));
    }
    if ends {
        return Ok(table.take(key).unwrap_or_else(|| Arc::new(new)));
    }
    Ok(table.put(key.clone(), new))
}

fn changed_spec(kind: &Kind, new: &Value, old: &Value) -> bool {
    if !kind.custom {
        return new.get("spec") != old.get("spec");
    }
    let rest = |object: &Value| {
        let mut rest = object.clone();
        fields::unset(&mut rest, "/metadata");
        fields::unset(&mut rest, "/status");
        rest
    };
    rest(new) != rest(old)
}

fn check_identity(kind: &Kind, key: &Key, old: &Value, new: &Value) -> Result<(), Failure> {
    let name = text(new, "/metadata/name");
    if name != key.name {
        let why = format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            key.name
        );
        return Err(Failure::bad_request(why));
    }
    let (uid, stored) = (text(new, "/metadata/uid"), text(old, "/metadata/uid"));
    if !uid.is_empty() && uid != stored {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}",
            kind.plural, key.namespace, key.name
        );
        return Err(Failure::conflict(kind, &key.name, &why));
    }
    let version = text(new, "/metadata/resourceVersion");
    if !version.is_empty() && version != text(old, "/metadata/resourceVersion") {
        return Err(Failure::modified(kind, &key.name));
    }
    Ok(())
}

/// Refuses a patch with another version or UID. Unlike in an update, the UID of a patch is not a precondition but an immutable
/// field: 422, and only for a patch of the stored version.
pub(crate) fn check_patched(kind: &Kind, key: &Key, old: &Value, new: &Value) -> Result<(), Failure> {
    let version = text(new, "/metadata/resourceVersion");
    if !version.is_empty() && version != text(old, "/metadata/resourceVersion") {
        return Err(Failure::modified(kind, &key.name));
    }
    let uid = text(new, "/metadata/uid");
    if uid.is_empty() || uid == text(old, "/metadata/uid") {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.uid", &uid.into(), "field is immutable");
    Err(Failure::invalid(kind, &key.name, &[cause]))
}

fn keep_system_fields(new: &mut Value, old: &Value) {
    for field in [
        "uid",
        "namespace",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        fields::copy(new, old, &format!("/metadata/{field}"));
    }
}

/// An update of the status changes nothing else, except that kinds of the core accept labels and similar metadata.
fn keep_all_but_status(kind: &Kind, new: &mut Value, old: &Value) {
    let strict = kind.custom || kind.kind.starts_with("Lifecycle");
    let mut kept = old.clone();
    fields::copy(&mut kept, new, "/status");
    if !strict {
        for field in ["labels", "annotations", "finalizers"] {
            fields::copy(&mut kept, new, &format!("/metadata/{field}"));
        }
    }
    *new = kept;
}

fn check_finalizers(kind: &Kind, key: &Key, old: &Value, new: &Value) -> Result<(), Failure> {
    if text(old, "/metadata/deletionTimestamp").is_empty() {
        return Ok(());
    }
    let before = fields::items(old, "/metadata/finalizers");
    let added: Vec<String> = fields::items(new, "/metadata/finalizers")
        .iter()
        .filter(|it| !before.contains(it))
        .map(|it| it.to_string())
        .collect();
    if added.is_empty() {
        return Ok(());
    }
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    Err(Failure::invalid(
        kind,
        &key.name,
        &[Cause::forbidden("metadata.finalizers", &why)],
    ))
}
