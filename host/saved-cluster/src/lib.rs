//! A cluster in a file: objects as `kubectl get -A -o json` prints them, which answer reads as their API server would.
//!
//! Everything above the cluster edge works on it unchanged. It never changes, so watches tell of nothing, and refuses writes. Of
//! a kind without objects in the file it is not known whether there are any: reading those is refused. Disruption budgets may
//! be none: [`SavedCluster::has_budgets`] tells.

#![deny(missing_docs)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use http::{Method, Response, StatusCode, Uri};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Frame;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use scupper_cluster::{Cluster, ConnectOptions, NOT_SAVED};
use scupper_common::label_selector;
use scupper_engine::Time;
use serde_json::{Value, json};
use thiserror::Error;

/// The version of all objects.
const VERSION: &str = "1";

const NODES: &str = "v1/nodes";
const PODS: &str = "v1/pods";
const BUDGETS: &str = "policy/v1/poddisruptionbudgets";

/// The field that a node's pods are selected by.
const NODE_NAME: &str = "spec.nodeName";

/// The objects of a file.
#[derive(Clone, Debug, Default)]
pub struct SavedCluster {
    /// By the path of their group and version, and the plural of their kind: `v1/pods`.
    kinds: Arc<BTreeMap<String, Kind>>,
}

/// The objects of a kind.
#[derive(Debug, Default)]
struct Kind {
    /// By namespace and name, which is the order of an API server's lists.
    objects: Vec<Value>,
    /// The places of those that a node runs: a plan lists the pods of each.
    by_node: BTreeMap<String, Vec<usize>>,
    /// All of them as a watch gives them: each plan watches the disruption budgets.
    as_events: OnceLock<Bytes>,
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

type Answer = Response<Either<Full<Bytes>, StreamBody<Watch>>>;

/// The objects as they are, and nothing after that.
type Watch = stream::Chain<
    stream::Iter<std::option::IntoIter<Result<Frame<Bytes>, Infallible>>>,
    stream::Pending<Result<Frame<Bytes>, Infallible>>,
>;

impl SavedCluster {
    /// These objects and those of these lists. There must be nodes and pods.
    pub fn of(documents: Vec<Value>) -> Result<Self, SavedError> {
        let mut kinds = BTreeMap::new();
        documents
            .into_iter()
            .try_for_each(|document| add(&mut kinds, document, None))?;
        for (path, name) in [(NODES, "nodes"), (PODS, "pods")] {
            if !kinds.contains_key(path) {
                return Err(SavedError::Missing(name));
            }
        }
        kinds.entry(BUDGETS.to_owned()).or_default();
        let kinds = kinds.into_iter().map(|(kind, objects)| (kind, Kind::of(objects)));
        Ok(Self {
            kinds: Arc::new(kinds.collect()),
        })
    }

    /// The file has disruption budgets; otherwise they are read as none.
    pub fn has_budgets(&self) -> bool {
        let budgets = self.kinds.get(BUDGETS);
        budgets.is_some_and(|budgets| !budgets.objects.is_empty())
    }

    /// About when the file was saved: nothing of a node or a pod in it is newer. `None`: they have no times.
    pub fn saved_at(&self) -> Option<Time> {
        let kinds = [NODES, PODS].into_iter().filter_map(|kind| self.kinds.get(kind));
        kinds.flat_map(|kind| &kind.objects).flat_map(times).max()
    }

    /// A handle on it, as on a cluster that runs.
    pub fn handle(self, options: ConnectOptions) -> Cluster {
        Cluster::answered(move |method, address| self.answer(method, address), options)
    }

    fn answer(&self, method: &Method, address: &Uri) -> Answer {
        let query = address.query().unwrap_or_default();
        match Target::of(address.path()) {
            _ if method != Method::GET => refuse(
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

impl Kind {
    fn of(mut objects: Vec<Value>) -> Self {
        objects.sort_by(|one, other| key(one).cmp(&key(other)));
        // A file may be several lists, one behind the other.
        objects.dedup_by(|one, other| key(one) == key(other));
        let mut by_node: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, object) in objects.iter().enumerate() {
            let node = text_at(object, NODE_NAME);
            if !node.is_empty() {
                by_node.entry(node.to_owned()).or_default().push(place);
            }
        }
        Self {
            objects,
            by_node,
            as_events: OnceLock::new(),
        }
    }

    fn get(&self, namespace: &str, name: &str) -> Option<&Value> {
        let place = self
            .objects
            .binary_search_by(|object| key(object).cmp(&(namespace, name)));
        place.ok().and_then(|place| self.objects.get(place))
    }

    /// Those of this namespace, or all, on this node, or anywhere.
    fn list<'a>(
        &'a self,
        namespace: Option<&'a str>,
        node: Option<&str>,
    ) -> Box<dyn Iterator<Item = &'a Value> + 'a> {
        let objects: Box<dyn Iterator<Item = &Value>> = match node {
            Some(node) => {
                let places = self.by_node.get(node).into_iter().flatten();
                Box::new(places.filter_map(|place| self.objects.get(*place)))
            }
            None => Box::new(self.objects.iter()),
        };
        let is_here = move |object: &&Value| namespace.is_none_or(|namespace| key(object).0 == namespace);
        Box::new(objects.filter(is_here))
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
    if key(&object).1.is_empty() {
        return Err(SavedError::NoField("metadata.name"));
    }
    let plural = format!("{version}/{}s", kind.to_lowercase());
    kinds.entry(plural).or_default().push(object);
    Ok(())
}

/// Its namespace and its name.
fn key(object: &Value) -> (&str, &str) {
    let text = |field: &str| {
        let field = object.get("metadata").and_then(|metadata| metadata.get(field));
        field.and_then(Value::as_str).unwrap_or_default()
    };
    (text("namespace"), text("name"))
}

/// When something happened to an object: its creation, the request to end it, and what its conditions tell.
fn times(object: &Value) -> impl Iterator<Item = Time> {
    let metadata = object.get("metadata");
    let created = time(metadata, "creationTimestamp");
    // The timestamp itself is the end of the grace period.
    let grace = metadata.and_then(|metadata| metadata.get("deletionGracePeriodSeconds")?.as_u64());
    let asked = time(metadata, "deletionTimestamp").zip(grace);
    let asked = asked.map(|(ends, grace)| ends - Duration::from_secs(grace));
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let told = conditions.into_iter().flatten().flat_map(|condition| {
        ["lastHeartbeatTime", "lastTransitionTime"].map(|field| time(Some(condition), field))
    });
    told.chain([created, asked]).flatten()
}

fn time(object: Option<&Value>, field: &str) -> Option<Time> {
    let time: Timestamp = object?.get(field)?.as_str()?.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok().map(Time::from_millis)
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

    fn answer(&self, kind: &Kind, query: &Query) -> Answer {
        if let Some(name) = &self.name {
            return match kind.get(self.namespace.as_deref().unwrap_or_default(), name) {
                Some(object) => reply(200, object),
                None => refuse(404, "NotFound", "the file has no such object", name),
            };
        }
        let here = kind.list(self.namespace.as_deref(), query.node());
        let here = here.filter(|object| query.selects(object));
        match (query.text("watch"), query.text("sendInitialEvents")) {
            (None, _) => query.page(here),
            (Some(_), None) => watch(None),
            (Some(_), Some(_)) if self.namespace.is_none() && query.selects_all() => {
                let events = kind.as_events.get_or_init(|| self.as_events(here));
                watch(Some(events.clone()))
            }
            (Some(_), Some(_)) => watch(Some(self.as_events(here))),
        }
    }

    /// The objects, and that these are all.
    fn as_events<'a>(&self, objects: impl Iterator<Item = &'a Value>) -> Bytes {
        let version = self.kind.rsplit_once('/').map_or("", |(version, _)| version);
        let end = json!({"type": "BOOKMARK", "object": {"apiVersion": version, "kind": "Bookmark",
            "metadata": {"resourceVersion": VERSION, "annotations": {"k8s.io/initial-events-end": "true"}}}});
        let added = objects.map(|object| format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"));
        let lines = added.chain([format!("{end}\n")]);
        lines.collect::<String>().into()
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

    /// The node whose objects are asked for.
    fn node(&self) -> Option<&str> {
        let mut fields = self.text("fieldSelector")?.split(',');
        let value = fields.find_map(|term| term.strip_prefix(NODE_NAME)?.strip_prefix('='))?;
        Some(value.strip_prefix('=').unwrap_or(value))
    }

    fn selects_all(&self) -> bool {
        self.text("fieldSelector").is_none() && self.text("labelSelector").is_none()
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
    fn page<'a>(&self, objects: impl Iterator<Item = &'a Value>) -> Answer {
        let number = |key: &str| self.text(key).and_then(|text| text.parse::<usize>().ok());
        let before = number("continue").unwrap_or(0);
        let size = number("limit").filter(|size| *size > 0).unwrap_or(usize::MAX);
        let mut objects = objects.skip(before);
        let items: Vec<&Value> = objects.by_ref().take(size).collect();
        let token = match objects.next() {
            Some(_) => before.saturating_add(items.len()).to_string(),
            None => String::new(),
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
    if let Ok(code) = StatusCode::from_u16(code) {
        *response.status_mut() = code;
    }
    response
}

fn watch(events: Option<Bytes>) -> Answer {
    let events = stream::iter(events.map(|events| Ok(Frame::data(events))));
    Response::new(Either::Right(StreamBody::new(events.chain(stream::pending()))))
}

/// A `Status`.
fn refuse(code: u16, reason: &str, message: &str, name: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": message, "details": {"name": name}});
    reply(code, &status)
}
