//! The shared handle of the table: for the server, the simulated cluster, and tests that bypass the API.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::delete::{self, DeleteOptions};
use super::failure::Failure;
use super::fields::{self, text};
use super::kinds::Kind;
use super::table::{Key, Table};
use super::write;

/// Direct access to the stored objects, without HTTP, faults or authorization.
#[derive(Clone, Debug)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    latest: watch::Sender<u64>,
}

/// Why the store rejects an object.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its `apiVersion` and `kind` are not served.
    #[error("this server does not serve {api_version:?} {kind:?}")]
    UnknownKind {
        /// The value in the object.
        api_version: String,
        /// The value in the object.
        kind: String,
    },
    /// A resource name (`pods`, `leases.coordination.k8s.io`) that is not served.
    #[error("this server does not serve the resource {0:?}")]
    UnknownResource(String),
    /// The object does not exist.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The server refused it.
    #[error("{0}")]
    Refused(String),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        Self::Refused(text(&failure.body, "/message").to_owned())
    }
}

impl Store {
    pub(crate) fn new(table: Table) -> Self {
        let latest = watch::Sender::new(table.version);
        Self(Arc::new(Shared {
            table: Mutex::new(table),
            latest,
        }))
    }

    pub(crate) fn latest(&self) -> watch::Receiver<u64> {
        self.0.latest.subscribe()
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        look(&self.0.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn write<T>(&self, act: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.0.table.lock().unwrap_or_else(PoisonError::into_inner);
        let before = table.version;
        let done = act(&mut table);
        let after = table.version;
        drop(table);
        if after != before {
            self.0.latest.send_replace(after);
        }
        done
    }

    /// Creates the object, or replaces it including its status and deletion. Creates a missing namespace.
    pub fn apply(&self, object: Value) -> Result<Value, StoreError> {
        self.write(|table| {
            let kind = kind_of(table, &object)?;
            let namespace = if kind.namespaced {
                Some(text(&object, "/metadata/namespace"))
                    .filter(|it| !it.is_empty())
                    .or(Some("default"))
            } else {
                None
            };
            make_namespace(table, namespace)?;
            let key = Key::new(
                &kind,
                namespace.unwrap_or_default(),
                text(&object, "/metadata/name"),
            );
            let mut whole = match table.get(&key) {
                Some(old) => keep_identity(object, old),
                None => {
                    let status = object.get("status").cloned();
                    let draft = write::create(table, &kind, namespace, object.clone(), true)?;
                    let mut made = Value::clone(&draft);
                    fields::copy(&mut made, &object, "/metadata/generation");
                    if kind.generation && made.pointer("/metadata/generation").is_none() {
                        fields::set(&mut made, "/metadata/generation", 1.into());
                    }
                    if let Some(status) = status {
                        fields::set(&mut made, "/status", status);
                    }
                    for field in [
                        "/metadata/deletionTimestamp",
                        "/metadata/deletionGracePeriodSeconds",
                    ] {
                        fields::copy(&mut made, &object, field);
                    }
                    if !text(&object, "/metadata/uid").is_empty() {
                        fields::copy(&mut made, &object, "/metadata/uid");
                    }
                    made
                }
            };
            fields::unset(&mut whole, "/metadata/resourceVersion");
            Ok(Value::clone(&table.put(key, whole)))
        })
    }

    /// The object, if it exists. `resource` is `pods` or `leases.coordination.k8s.io`; `namespace` is empty for cluster-scoped ones.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.read(|table| {
            table
                .get(&key(resource, namespace, name))
                .map(|it| Value::clone(it))
        })
    }

    /// Every object of a resource, sorted by namespace and name.
    pub fn list(&self, resource: &str) -> Vec<Value> {
        self.read(|table| {
            table
                .list(resource, None)
                .map(|(_, it)| Value::clone(it))
                .collect()
        })
    }

    /// Removes an object at once, despite finalizers.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.write(|table| {
            table
                .take(&key(resource, namespace, name))
                .map(|it| Value::clone(&it))
        })
    }

    /// Deletes it as a client would: with its grace period and its finalizers.
    pub fn delete_gracefully(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, StoreError> {
        self.write(|table| {
            let kind = table
                .kind(resource)
                .ok_or_else(|| StoreError::UnknownResource(resource.to_owned()))?;
            let deleted = delete::delete(
                table,
                &kind,
                &key(resource, namespace, name),
                &DeleteOptions::default(),
            )?;
            Ok(Value::clone(&deleted.object))
        })
    }

    /// Changes an object in place, with a new version.
    pub fn edit(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, StoreError> {
        self.write(|table| {
            let key = key(resource, namespace, name);
            let Some(old) = table.get(&key) else {
                return Err(StoreError::NotFound(format!("{resource} {namespace}/{name}")));
            };
            let mut new = Value::clone(old);
            change(&mut new);
            Ok(Value::clone(&table.put(key, new)))
        })
    }
}

fn key(resource: &str, namespace: &str, name: &str) -> Key {
    Key {
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn kind_of(table: &Table, object: &Value) -> Result<Arc<Kind>, StoreError> {
    table.kind_of(object).ok_or_else(|| StoreError::UnknownKind {
        api_version: text(object, "/apiVersion").to_owned(),
        kind: text(object, "/kind").to_owned(),
    })
}

fn make_namespace(table: &mut Table, namespace: Option<&str>) -> Result<(), StoreError> {
    let Some(namespace) = namespace else { return Ok(()) };
    if table.get(&key("namespaces", "", namespace)).is_some() {
        return Ok(());
    }
    if let Some(kind) = table.kind("namespaces") {
        let object =
            serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        write::create(table, &kind, None, object, false)?;
    }
    Ok(())
}

fn keep_identity(mut object: Value, old: &Value) -> Value {
    for field in ["uid", "creationTimestamp", "generation", "namespace"] {
        if object.pointer(&format!("/metadata/{field}")).is_none() {
            fields::copy(&mut object, old, &format!("/metadata/{field}"));
        }
    }
    object
}
