//! Handles a request that is authorized and not faulted: from its target to the response.

use serde_json::{Value, json};
use tokio::time::sleep;

use super::delete::{self, DeleteOptions};
use super::failure::Failure;
use super::fields::{self, text};
use super::list;
use super::patch::Patch;
use super::selector::Selection;
use super::shape::Shape;
use super::store::Store;
use super::target::{Query, Target};
use super::watch::{Setting, Watcher};
use super::{eviction, write};

/// A parsed request.
pub(crate) struct Asked {
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) verb: &'static str,
    pub(crate) shape: Shape,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

/// The response.
pub(crate) enum Answer {
    Object(u16, Value),
    Watch(Box<Watcher>),
}

/// How long a server waits for a future version.
const WAIT_FOR_VERSION: std::time::Duration = std::time::Duration::from_secs(3);

/// The verb of a request, as in RBAC and audit logs.
pub(crate) fn verb(method: &str, target: &Target, query: &Query) -> Option<&'static str> {
    Some(match (method, target.name.is_some()) {
        ("GET", _) if query.flag("watch") => "watch",
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", true) => "update",
        ("PATCH", true) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => return None,
    })
}

impl Asked {
    /// Carries out the request.
    pub(crate) async fn answer(
        self,
        store: &Store,
        setting: impl FnOnce() -> Setting,
    ) -> Result<Answer, Failure> {
        let sub = self.target.subresource.as_deref();
        match (self.verb, sub) {
            ("create", Some("eviction")) if self.target.kind.kind == "Pod" => {
                let body = self.json()?;
                let done = eviction::evict(store, &self.target, &self.query, &body).await?;
                return Ok(Answer::Object(201, done));
            }
            (_, None) => {}
            ("get" | "update" | "patch", Some("status")) if self.target.kind.status => {}
            ("update", Some("finalize")) if self.target.kind.kind == "Namespace" => {}
            _ => return Err(Failure::no_such_path()),
        }
        if matches!(self.verb, "get" | "list") && store.read(|table| list::lies_ahead(table, &self.query)) {
            self.wait_for_version(store).await?;
        }
        match self.verb {
            "watch" => {
                let watcher = Watcher::start(setting(), self.target, &self.query, self.shape)?;
                Ok(Answer::Watch(Box::new(watcher)))
            }
            "list" => store
                .read(|table| list::list(table, &self.target, &self.query, self.shape))
                .map(|it| Answer::Object(200, it)),
            "get" => self.get(store),
            "create" => self.create(store),
            "update" => self.update(store),
            "patch" => self.patch(store),
            "delete" => self.delete(store),
            "deletecollection" => self.delete_collection(store),
            _ => Err(Failure::method_not_allowed()),
        }
    }

    async fn wait_for_version(&self, store: &Store) -> Result<(), Failure> {
        let mut latest = store.latest();
        let arrived = async {
            while store.read(|table| list::lies_ahead(table, &self.query)) {
                if latest.changed().await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            biased;
            () = arrived => Ok(()),
            () = sleep(WAIT_FOR_VERSION) => Err(store.read(|table| list::too_large(table, &self.query))),
        }
    }

    fn json(&self) -> Result<Value, Failure> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
        })
    }

    fn get(&self, store: &Store) -> Result<Answer, Failure> {
        let key = self.target.key();
        let found = store.read(|table| table.get(&key).cloned());
        let object = found.ok_or_else(|| Failure::not_found(&self.target.kind, &key.name))?;
        Ok(Answer::Object(200, self.shape.object(&object)))
    }

    fn create(&self, store: &Store) -> Result<Answer, Failure> {
        if self.target.name.is_some() {
            return Err(Failure::method_not_allowed());
        }
        let body = self.typed()?;
        let namespace = self.target.namespace.as_deref();
        let dry = self.query.dry_run();
        let made = store.write(|table| write::create(table, &self.target.kind, namespace, body, dry))?;
        Ok(Answer::Object(201, self.shape.object(&made)))
    }

    /// The body of a create or an update. Kinds of the core may omit their kind.
    fn typed(&self) -> Result<Value, Failure> {
        let mut body = self.json()?;
        let kind = &self.target.kind;
        if !kind.custom && body.is_object() {
            for (field, value) in [("/kind", kind.kind.clone()), ("/apiVersion", kind.api_version())] {
                if text(&body, field).is_empty() {
                    fields::set(&mut body, field, value.into());
                }
            }
        }
        Ok(body)
    }

    fn update(&self, store: &Store) -> Result<Answer, Failure> {
        let mut body = self.typed()?;
        let key = self.target.key();
        if text(&body, "/metadata/name").is_empty() {
            fields::set(&mut body, "/metadata/name", key.name.clone().into());
        }
        let sub = self.target.subresource.as_deref();
        let done = store
            .write(|table| write::update(table, &self.target.kind, &key, sub, body, self.query.dry_run()))?;
        Ok(Answer::Object(200, self.shape.object(&done)))
    }

    fn patch(&self, store: &Store) -> Result<Answer, Failure> {
        let kind = &self.target.kind;
        let how = Patch::parse(kind, &self.content_type)?;
        let body = self.json()?;
        let key = self.target.key();
        let sub = self.target.subresource.as_deref();
        let dry = self.query.dry_run();
        store.write(|table| {
            let Some(old) = table.get(&key).cloned() else {
                if how != Patch::Apply || sub.is_some() {
                    return Err(Failure::not_found(kind, &key.name));
                }
                let mut object = body;
                fields::unset(&mut object, "/metadata/managedFields");
                let made = write::create(table, kind, self.target.namespace.as_deref(), object, dry)?;
                return Ok(Answer::Object(201, self.shape.object(&made)));
            };
            let new = how.apply(&old, &body)?;
            write::check_patched(kind, &key, &old, &new)?;
            let done = write::update(table, kind, &key, sub, new, dry)?;
            Ok(Answer::Object(200, self.shape.object(&done)))
        })
    }

    fn delete_options(&self) -> Result<DeleteOptions, Failure> {
        let mut options = DeleteOptions::parse(&self.json()?);
        options.dry |= self.query.dry_run();
        let grace = self
            .query
            .number("gracePeriodSeconds")
            .and_then(|it| i64::try_from(it).ok());
        options.grace = options.grace.or(grace);
        Ok(options)
    }

    fn delete(&self, store: &Store) -> Result<Answer, Failure> {
        let options = self.delete_options()?;
        let key = self.target.key();
        let deleted = store.write(|table| delete::delete(table, &self.target.kind, &key, &options))?;
        Ok(Answer::Object(200, delete::answer(&self.target.kind, &deleted)))
    }

    fn delete_collection(&self, store: &Store) -> Result<Answer, Failure> {
        let kind = &self.target.kind;
        let options = self.delete_options()?;
        let query = &self.query;
        let selection = Selection::parse(kind, query.text("labelSelector"), query.text("fieldSelector"))?;
        store.write(|table| {
            let resource = kind.resource();
            let found: Vec<_> = table
                .list(&resource, self.target.namespace.as_deref())
                .filter(|(_, object)| selection.matches(object))
                .map(|(key, _)| key.clone())
                .collect();
            let mut items = Vec::new();
            for key in found {
                let deleted = delete::delete(table, kind, &key, &options)?;
                items.push(self.shape.item(kind, &deleted.object));
            }
            let (kind, version) = self.shape.list(kind);
            let metadata = json!({"resourceVersion": table.version.to_string()});
            let list = json!({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items});
            Ok(Answer::Object(200, list))
        })
    }
}
