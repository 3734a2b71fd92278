//! A cluster in a file: objects as `kubectl get -A -o json` prints them, which answer reads as their API server would.
//!
//! Everything above the client works on it unchanged. It never changes, so watches tell of nothing, and refuses writes. Of
//! a kind without objects in the file it is not known whether there are any: reading those is refused. Disruption budgets may
//! be none: [`SavedCluster::has_budgets`] tells.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::{Method, Request, Response};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use percent_encoding::percent_decode_str;
use scupper_common::clock::Clock;
use scupper_common::label_selector;
use serde_json::{Value, json};
use thiserror::Error;
use tower::service_fn;

use super::{Cluster, ConnectOptions};

/// The version of all objects.
const VERSION: &str = "1";

const BUDGETS: &str = "policy/v1/poddisruptionbudgets";

/// The `reason` of a refusal: the file has no objects of the kind.
pub(super) const NOT_SAVED: &str = "NotSaved";

/// The objects of a file.
#[derive(Clone, Debug, Default)]
pub struct SavedCluster {
    /// By the path of their group and version, and the plural of their kind: `v1/pods`.
    kinds: Arc<BTreeMap<String, Vec<Value>>>,
}

/// The reason why these are no objects.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SavedError {
    /// One has no `kind`, no `apiVersion` or no name.
    #[error("an object has no {0}; print them with `kubectl get ... -o json`")]
    NoField(&'static str),
    /// There are none of this kind.
    #[error("it has no {0}; print them with `kubectl get nodes,pods,... -A -o json`")]
    Missing(&'static str),
}

type Answer = Response<Either<Full<Bytes>, StreamBody<stream::Pending<Result<Frame<Bytes>, Infallible>>>>>;

impl SavedCluster {
    /// These objects and those of these lists. There must be nodes and pods.
    pub fn of(documents: Vec<Value>) -> Result<Self, SavedError> {
        let mut kinds = BTreeMap::new();
        documents
            .into_iter()
            .try_for_each(|document| add(&mut kinds, document, None))?;
        for (path, name) in [("v1/nodes", "nodes"), ("v1/pods", "pods")] {
            if !kinds.contains_key(path) {
                return Err(SavedError::Missing(name));
            }
        }
        kinds.entry(BUDGETS.to_owned()).or_default();
        let kinds = Arc::new(kinds);
        Ok(Self { kinds })
    }

    /// The file has disruption budgets; otherwise they are read as none.
    pub fn has_budgets(&self) -> bool {
        self.kinds.get(BUDGETS).is_some_and(|budgets| !budgets.is_empty())
    }

    fn answer(&self, request: &Request<Body>) -> Answer {
        let query = request.uri().query().unwrap_or_default();
        match Target::of(request.uri().path()) {
            _ if request.method() != Method::GET => refuse(
                405,
                "MethodNotAllowed",
                "the cluster is a file, which is only read",
                "",
            ),
            None => refuse(404, "NotFound", "the file has no such path", ""),
            Some(target) => match self.kinds.get(&target.kind) {
                None => {
                    let resource = target.resource();
                    let message = format!(
                        "the file has no {resource}; save them as well: kubectl get ...,{resource} -A -o json"
                    );
                    refuse(403, NOT_SAVED, &message, "")
                }
                Some(objects) => target.answer(objects, &Query::of(query)),
            },
        }
    }
}

impl Cluster {
    /// The handle on a cluster in a file.
    pub fn saved(saved: SavedCluster, options: ConnectOptions) -> Self {
        let service = service_fn(move |request: Request<Body>| {
            let answer = saved.answer(&request);
            std::future::ready(Ok::<_, Infallible>(answer))
        });
        Self::from_client(kube::Client::new(service, "default"), options, Clock::System)
    }
}

/// Adds an object, or those of a list. `of`: the version and kind of the items of a list, which do not have them.
fn add(
    kinds: &mut BTreeMap<String, Vec<Value>>,
    mut object: Value,
    of: Option<(&str, &str)>,
) -> Result<(), SavedError> {
    let (version, kind) = {
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        let version = text("apiVersion").or_else(|| of.map(|(version, _)| version.to_owned()));
        let kind = text("kind").or_else(|| of.map(|(_, kind)| kind.to_owned()));
        (
            version.ok_or(SavedError::NoField("apiVersion"))?,
            kind.ok_or(SavedError::NoField("kind"))?,
        )
    };
    if let (Some(item), Some(Value::Array(items))) = (kind.strip_suffix("List"), object.get_mut("items")) {
        let of = (!item.is_empty()).then_some((version.as_str(), item));
        let mut items = std::mem::take(items).into_iter();
        return items.try_for_each(|object| add(kinds, object, of));
    }
    if name_of(&object).is_empty() {
        return Err(SavedError::NoField("metadata.name"));
    }
    let plural = format!("{version}/{}s", kind.to_lowercase());
    kinds.entry(plural).or_default().push(object);
    Ok(())
}

fn name_of(object: &Value) -> &str {
    text_at(object, "metadata.name")
}

/// The text of a field by its path with dots; empty: it is missing.
fn text_at<'a>(object: &'a Value, path: &str) -> &'a str {
    let field = path.split('.').try_fold(object, |object, key| object.get(key));
    field.and_then(Value::as_str).unwrap_or_default()
}

/// `term`: `PATH=VALUE`, `PATH==VALUE` or `PATH!=VALUE`; empty: all objects.
fn has_field(object: &Value, term: &str) -> bool {
    let Some((path, value)) = term.split_once('=') else {
        return true;
    };
    match path.strip_suffix('!') {
        Some(path) => text_at(object, path) != value,
        None => text_at(object, path) == value.strip_prefix('=').unwrap_or(value),
    }
}

/// What a path names.
struct Target {
    kind: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl Target {
    fn of(path: &str) -> Option<Self> {
        let decoded = path.trim_matches('/').split('/');
        let decoded = decoded.map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned());
        let parts: Vec<String> = decoded.collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (version, rest) = match &parts[..] {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, plural, name) = match rest {
            ["namespaces", namespace, plural] => (Some(*namespace), *plural, None),
            ["namespaces", namespace, plural, name] => (Some(*namespace), *plural, Some(*name)),
            [plural] => (None, *plural, None),
            [plural, name] => (None, *plural, Some(*name)),
            _ => return None,
        };
        Some(Self {
            kind: format!("{version}/{plural}"),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        })
    }

    /// As kubectl knows it: `persistentvolumeclaims`, `deployments.apps`.
    fn resource(&self) -> String {
        match self.kind.split('/').collect::<Vec<_>>()[..] {
            [group, _, plural] => format!("{plural}.{group}"),
            [.., plural] => plural.to_owned(),
            [] => String::new(),
        }
    }

    fn answer(&self, objects: &[Value], query: &Query) -> Answer {
        let in_namespace = |object: &&Value| {
            let namespace = self.namespace.as_deref();
            namespace.is_none_or(|namespace| text_at(object, "metadata.namespace") == namespace)
        };
        let mut here = objects.iter().filter(in_namespace);
        if let Some(name) = &self.name {
            return match here.find(|object| name_of(object) == name) {
                Some(object) => reply(200, object),
                None => refuse(404, "NotFound", "the file has no such object", name),
            };
        }
        if query.text("watch").is_some() {
            return match query.text("sendInitialEvents") {
                Some(_) => refuse(422, "Invalid", "sendInitialEvents is not supported", ""),
                None => Response::new(Either::Right(StreamBody::new(stream::pending()))),
            };
        }
        let selected: Vec<&Value> = here.filter(|object| query.selects(object)).collect();
        query.page(&selected)
    }
}

/// The parameters of a request, decoded.
struct Query(BTreeMap<String, String>);

impl Query {
    fn of(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Self(pairs.map(|(key, value)| (decoded(key), decoded(value))).collect())
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn selects(&self, object: &Value) -> bool {
        let mut fields = self.text("fieldSelector").unwrap_or_default().split(',');
        let by_labels = || {
            let Some(selector) = self.text("labelSelector") else {
                return true;
            };
            let labels = object.pointer("/metadata/labels").cloned().unwrap_or_default();
            let labels = serde_json::from_value(labels).unwrap_or_default();
            label_selector::parse(selector).is_some_and(|selector| selector.matches(&labels))
        };
        fields.all(|term| has_field(object, term)) && by_labels()
    }

    /// A page of the list; the token is how many objects came before.
    fn page(&self, objects: &[&Value]) -> Answer {
        let number = |key: &str| self.text(key).and_then(|text| text.parse::<usize>().ok());
        let before = number("continue").unwrap_or(0);
        let size = number("limit").filter(|size| *size > 0).unwrap_or(usize::MAX);
        let items: Vec<&&Value> = objects.iter().skip(before).take(size).collect();
        let until = before.saturating_add(items.len());
        let token = match until < objects.len() {
            true => until.to_string(),
            false => String::new(),
        };
        let metadata = json!({"resourceVersion": VERSION, "continue": token});
        reply(
            200,
            &json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}),
        )
    }
}

fn reply(code: u16, body: &Value) -> Answer {
    let mut response = Response::new(Either::Left(Full::from(body.to_string())));
    if let Ok(code) = http::StatusCode::from_u16(code) {
        *response.status_mut() = code;
    }
    response
}

/// A `Status`.
fn refuse(code: u16, reason: &str, message: &str, name: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": message, "details": {"name": name}});
    reply(code, &status)
}
