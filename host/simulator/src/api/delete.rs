//! Deletion of objects: preconditions, grace periods, finalizers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::clock;
use super::failure::Failure;
use super::fields::{self, text};
use super::kinds::Kind;
use super::table::{Key, Table};

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) dry: bool,
}

impl DeleteOptions {
    /// From a `DeleteOptions` body; empty for null.
    pub(crate) fn parse(body: &Value) -> Self {
        let word = |pointer| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Self {
            grace: fields::number(body, "/gracePeriodSeconds"),
            uid: word("/preconditions/uid"),
            version: word("/preconditions/resourceVersion"),
            dry: fields::items(body, "/dryRun").iter().any(|it| it == "All"),
        }
    }

    /// The precondition that the stored object does not meet, if any.
    pub(crate) fn check(&self, kind: &Kind, object: &Value) -> Result<(), Failure> {
        let name = text(object, "/metadata/name");
        let stored = text(object, "/metadata/uid");
        if let Some(uid) = self.uid.as_deref().filter(|it| *it != stored) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({stored}). \
                 The object might have been deleted and then recreated"
            );
            return Err(Failure::precondition(kind, name, &why));
        }
        let stored = text(object, "/metadata/resourceVersion");
        if let Some(version) = self.version.as_deref().filter(|it| *it != stored) {
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
                 ({stored}). The object might have been modified"
            );
            return Err(Failure::precondition(kind, name, &why));
        }
        Ok(())
    }
}

/// The result of a deletion.
#[derive(Clone, Debug)]
pub(crate) struct Deleted {
    pub(crate) object: Arc<Value>,
    /// Removed from the store.
    pub(crate) gone: bool,
}

/// Deletes an object, or marks it as terminating.
pub(crate) fn delete(
    table: &mut Table,
    kind: &Kind,
    key: &Key,
    options: &DeleteOptions,
) -> Result<Deleted, Failure> {
    let old = table
        .get(key)
        .cloned()
        .ok_or_else(|| Failure::not_found(kind, &key.name))?;
    options.check(kind, &old)?;
    match kind.kind.as_str() {
        "Pod" => Ok(delete_pod(table, key, &old, options)),
        _ => Ok(delete_at_once(table, kind, key, &old, options.dry)),
    }
}

fn delete_at_once(table: &mut Table, kind: &Kind, key: &Key, old: &Arc<Value>, dry: bool) -> Deleted {
    let held = !fields::items(old, "/metadata/finalizers").is_empty() || kind.kind == "Namespace";
    if dry {
        return Deleted {
            object: Arc::clone(old),
            gone: !held,
        };
    }
    if !held {
        let object = table.take(key).unwrap_or_else(|| Arc::clone(old));
        return Deleted { object, gone: true };
    }
    if !text(old, "/metadata/deletionTimestamp").is_empty() {
        return Deleted {
            object: Arc::clone(old),
            gone: false,
        };
    }
    let mut object = Value::clone(old);
    fields::set(
        &mut object,
        "/metadata/deletionTimestamp",
        table.clock.stamp().into(),
    );
    if kind.kind == "Namespace" {
        fields::set(&mut object, "/status/phase", "Terminating".into());
    } else {
        fields::set(&mut object, "/metadata/deletionGracePeriodSeconds", 0.into());
    }
    if let Some(generation) = fields::number(&object, "/metadata/generation") {
        fields::set(&mut object, "/metadata/generation", (generation + 1).into());
    }
    Deleted {
        object: table.put(key.clone(), object),
        gone: false,
    }
}

/// The grace period of a pod that is not yet terminating.
fn first_grace(pod: &Value, options: &DeleteOptions) -> i64 {
    let own = fields::number(pod, "/spec/terminationGracePeriodSeconds").unwrap_or(0);
    let finished = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    if text(pod, "/spec/nodeName").is_empty() || finished {
        return 0;
    }
    match options.grace.unwrap_or(own) {
        negative if negative < 0 => 1,
        grace => grace,
    }
}

fn delete_pod(table: &mut Table, key: &Key, old: &Arc<Value>, options: &DeleteOptions) -> Deleted {
    let now = table.clock.stamp();
    let mut pod = Value::clone(old);
    if text(old, "/metadata/deletionTimestamp").is_empty() {
        let grace = first_grace(old, options);
        mark(&mut pod, &clock::shifted(&now, grace), grace);
        let generation = fields::number(&pod, "/metadata/generation").unwrap_or(1) + 1;
        fields::set(&mut pod, "/metadata/generation", generation.into());
    } else {
        let given = fields::number(old, "/metadata/deletionGracePeriodSeconds").unwrap_or(0);
        let wanted = options.grace.map(|it| if it < 0 { 1 } else { it });
        match wanted {
            _ if given == 0 => {}
            Some(grace) if grace < given => shorten(&mut pod, &now, given, grace),
            _ => {
                return Deleted {
                    object: Arc::clone(old),
                    gone: false,
                };
            }
        }
    }
    let grace = fields::number(&pod, "/metadata/deletionGracePeriodSeconds").unwrap_or(0);
    let gone = grace == 0 && fields::items(&pod, "/metadata/finalizers").is_empty();
    if options.dry {
        return Deleted {
            object: Arc::new(pod),
            gone,
        };
    }
    let written = if pod == **old {
        Arc::clone(old)
    } else {
        table.put(key.clone(), pod)
    };
    if !gone {
        return Deleted {
            object: written,
            gone,
        };
    }
    Deleted {
        object: table.take(key).unwrap_or(written),
        gone,
    }
}

fn mark(pod: &mut Value, at: &str, grace: i64) {
    fields::set(pod, "/metadata/deletionTimestamp", at.into());
    fields::set(pod, "/metadata/deletionGracePeriodSeconds", grace.into());
}

/// A shorter grace period counts from the first deletion, and never ends in the past.
fn shorten(pod: &mut Value, now: &str, given: i64, grace: i64) {
    let at = clock::shifted(text(pod, "/metadata/deletionTimestamp"), grace - given);
    let grace = if *at < *now && grace != 0 { 1 } else { grace };
    let at = if *at < *now { now.to_owned() } else { at };
    mark(pod, &at, grace);
}

/// The body of the response to a deletion.
pub(crate) fn answer(kind: &Kind, deleted: &Deleted) -> Value {
    let returned = matches!(
        kind.kind.as_str(),
        "Pod" | "Namespace" | "ServiceAccount" | "LifecycleEvent"
    ) && !kind.custom;
    if !deleted.gone || returned {
        return Value::clone(&deleted.object);
    }
    let name = text(&deleted.object, "/metadata/name");
    let mut details = kind.details(name, &kind.plural);
    fields::set(
        &mut details,
        "/uid",
        text(&deleted.object, "/metadata/uid").into(),
    );
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
