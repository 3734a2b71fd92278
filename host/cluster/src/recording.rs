//! Keeps the objects that the API server returns to reads, as a snapshot for later tests of policies.
//!
//! The recorder sees bodies, not requests: the snapshot holds the objects of every get, list and watch. It keeps only
//! kinds that [`decode`](super::decode) knows, and leaves out what may be secret: environment variables and command
//! lines.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use serde_json::{Map, Value, json};

use super::{Object, decode};

/// Keeps what the API server returns. Clones share what they have kept.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Answer>>>);

/// The body of one answer, as far as it was read.
type Answer = Arc<Mutex<Vec<u8>>>;

impl Recorder {
    /// The objects read so far, as a `List` that kubectl could have printed. Each is in its last state.
    pub fn snapshot(&self) -> Value {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = BTreeMap::new();
        for answer in answers.iter() {
            let bytes = answer.lock().unwrap_or_else(PoisonError::into_inner);
            for document in serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>() {
                // A watch that is still open ends within an event.
                let Ok(document) = document else { break };
                add(&mut found, document);
            }
        }
        let items: Vec<Value> = found.into_values().collect();
        json!({ "apiVersion": "v1", "kind": "List", "items": items })
    }

    fn begin(&self) -> Answer {
        let answer = Answer::default();
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push(Arc::clone(&answer));
        answer
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

/// Kind, namespace, name.
type Key = (String, String, String);

/// Adds an object, the items of a list, or the object of a watch's event.
fn add(found: &mut BTreeMap<Key, Value>, document: Value) {
    let Value::Object(mut fields) = document else {
        return;
    };
    if let (Some(change), Some(object)) = (text(fields.get("type")), fields.remove("object")) {
        return match change.as_str() {
            "DELETED" => drop(key(&object).and_then(|key| found.remove(&key))),
            "ADDED" | "MODIFIED" => keep(found, object),
            _ => {}
        };
    }
    let kind = text(fields.get("kind")).unwrap_or_default();
    match (kind.strip_suffix("List"), fields.remove("items")) {
        (Some(of), Some(Value::Array(items))) => {
            let version = fields.remove("apiVersion").unwrap_or_default();
            for mut item in items {
                // The items of a list have neither.
                if let Value::Object(item) = &mut item {
                    item.entry("kind").or_insert_with(|| of.into());
                    item.entry("apiVersion").or_insert_with(|| version.clone());
                }
                keep(found, item);
            }
        }
        _ => keep(found, Value::Object(fields)),
    }
}

fn keep(found: &mut BTreeMap<Key, Value>, mut object: Value) {
    let Some(key) = key(&object) else { return };
    let is_known = decode(object.clone()).is_ok_and(|decoded| {
        !decoded
            .iter()
            .any(|object| matches!(object, Object::Other { .. }))
    });
    if is_known {
        redact(&mut object);
        found.insert(key, object);
    }
}

fn key(object: &Value) -> Option<Key> {
    let of = |path: &str| text(object.pointer(path));
    Some((
        of("/kind")?,
        of("/metadata/namespace").unwrap_or_default(),
        of("/metadata/name")?,
    ))
}

fn text(value: Option<&Value>) -> Option<String> {
    Some(value?.as_str()?.to_owned())
}

/// Removes what may be secret and what only takes up space.
fn redact(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    for spec in [
        "/spec",
        "/spec/template/spec",
        "/spec/jobTemplate/spec/template/spec",
    ] {
        for containers in ["containers", "initContainers", "ephemeralContainers"] {
            let found = object.pointer_mut(spec).and_then(|spec| spec.get_mut(containers));
            let containers = found.and_then(Value::as_array_mut).into_iter().flatten();
            containers
                .filter_map(Value::as_object_mut)
                .for_each(redact_container);
        }
    }
}

fn redact_container(container: &mut Map<String, Value>) {
    for field in ["env", "envFrom", "command", "args", "lifecycle"] {
        container.remove(field);
    }
}

/// A body, which a recorder may copy while it is read.
pub(super) struct RecordingBody<B> {
    body: B,
    answer: Option<Answer>,
}

impl<B> RecordingBody<B> {
    /// Copies the body to the recorder as it is read, if there is a recorder.
    pub(super) fn new(body: B, recorder: Option<&Recorder>) -> Self {
        let answer = recorder.map(Recorder::begin);
        Self { body, answer }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for RecordingBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let (Some(Ok(frame)), Some(answer)) = (&frame, &self.answer)
            && let Some(data) = frame.data_ref()
        {
            let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
            answer.extend_from_slice(data);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    async fn recorded(answers: &[Value]) -> Value {
        let recorder = Recorder::default();
        for answer in answers {
            let body = Full::new(Bytes::from(answer.to_string()));
            let read = RecordingBody::new(body, Some(&recorder)).collect().await;
            assert_eq!(read.unwrap().to_bytes(), answer.to_string());
        }
        recorder.snapshot()["items"].clone()
    }

    #[tokio::test]
    async fn lists_single_objects_and_watches_become_one_list() {
        let pod =
            |name: &str| json!({"metadata": {"namespace": "shop", "name": name, "uid": name}, "spec": {}});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}});
        let items = recorded(&[
            json!({"apiVersion": "v1", "kind": "PodList", "items": [pod("web"), pod("db")]}),
            node.clone(),
            json!({"type": "ADDED", "object": node}),
        ])
        .await;
        let kinds: Vec<_> = items
            .as_array()
            .unwrap()
            .iter()
            .map(|it| key(it).unwrap())
            .collect();
        let expected = [
            ("Node", "", "worker-1"),
            ("Pod", "shop", "db"),
            ("Pod", "shop", "web"),
        ];
        let expected = expected.map(|(kind, namespace, name)| (kind.into(), namespace.into(), name.into()));
        assert_eq!(kinds, expected);
        assert_eq!(items[1]["apiVersion"], "v1");
    }

    #[tokio::test]
    async fn a_watch_that_was_cut_off_counts_as_far_as_it_came() {
        let recorder = Recorder::default();
        let event = |change: &str, name: &str| {
            json!({"type": change, "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}}).to_string()
        };
        let text = [
            event("ADDED", "a"),
            event("ADDED", "b"),
            event("DELETED", "a"),
            "{\"type\": ".to_owned(),
        ];
        let body = Full::new(Bytes::from(text.join("\n")));
        RecordingBody::new(body, Some(&recorder)).collect().await.unwrap();
        let items = recorder.snapshot()["items"].clone();
        assert_eq!(items.as_array().unwrap().len(), 1, "{items}");
        assert_eq!(items[0]["metadata"]["name"], "b");
    }

    #[tokio::test]
    async fn secrets_and_what_may_hold_them_are_not_kept() {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}});
        let container = json!({"name": "c", "image": "i", "env": [{"name": "TOKEN", "value": "secret"}],
            "args": ["--password=secret"], "command": ["secret"], "resources": {"requests": {"cpu": "1"}}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "shop", "name": "web", "managedFields": [{"manager": "secret"}],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "secret", "a": "b"}},
            "spec": {"containers": [container], "initContainers": [container]}});
        let template = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"template": {"spec": {"containers": [container]}}}});
        let items = recorded(&[secret, pod, template]).await;
        assert!(!items.to_string().contains("secret"), "{items}");
        assert_eq!(
            items[1]["spec"]["containers"][0]["resources"]["requests"]["cpu"],
            "1"
        );
        assert_eq!(items[1]["metadata"]["annotations"], json!({"a": "b"}));
        assert_eq!(items.as_array().unwrap().len(), 2, "{items}");
    }
}
