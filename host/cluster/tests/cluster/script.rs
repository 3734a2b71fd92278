//! The scripted API server.

use std::io;
use std::time::Duration;

use crate::limit::LIMIT;
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt as _};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::Body;
use scupper_cluster::{Cluster, ConnectOptions};
use scupper_common::clock::Clock;
use scupper_engine::{Event, Time};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_test::mock::{self, SendResponse};

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// The time when a test begins, 2026-09-01T10:00:00Z.
pub(crate) const TEN: u64 = 1_788_256_800_000;

pub(crate) struct Script {
    handle: mock::Handle<Request<Body>, Answer>,
    peeked: Option<(Request<Body>, SendResponse<Answer>)>,
}

/// A request that has arrived and waits for its answer.
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) impersonates: String,
    pub(crate) body: Value,
    reply: SendResponse<Answer>,
}

/// The sending end of an open watch.
pub(crate) struct Lines(mpsc::UnboundedSender<Result<Bytes, io::Error>>);

pub(crate) fn cluster() -> (Cluster, Script) {
    cluster_evicting_as(None)
}

/// The user that evicts pods.
pub(crate) fn cluster_evicting_as(user: Option<&str>) -> (Cluster, Script) {
    let (service, handle) = mock::pair::<Request<Body>, Answer>();
    let options = ConnectOptions {
        eviction_timeout: Duration::from_secs(5),
        request_timeout: Duration::from_secs(10),
        evict_as: user.map(str::to_owned),
        ..ConnectOptions::default()
    };
    let clock = Clock::starting_at(Time::from_millis(TEN));
    (
        Cluster::from_client(kube::Client::new(service, "default"), options, clock),
        Script { handle, peeked: None },
    )
}

impl Script {
    /// The next request, whatever it is.
    pub(crate) async fn next(&mut self) -> Call {
        let (request, reply) = match self.peeked.take() {
            Some(peeked) => peeked,
            None => {
                let next = tokio::time::timeout(LIMIT, self.handle.next_request()).await;
                next.expect("a request is missing").expect("the client is gone")
            }
        };
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let header = |name: &str| {
            parts
                .headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let query = parts.uri.query().unwrap_or_default();
        let pair = |pair: &str| {
            pair.split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        Call {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: query.split('&').filter_map(pair).collect(),
            content_type: header("content-type").unwrap_or_default(),
            accept: header("accept").unwrap_or_default(),
            impersonates: header("impersonate-user").unwrap_or_default(),
            body: if body.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&body).unwrap()
            },
            reply,
        }
    }

    /// The next request, which must match.
    pub(crate) async fn expect(&mut self, method: &str, path: &str) -> Call {
        let call = self.next().await;
        assert_eq!(
            (call.method.as_str(), call.path.as_str()),
            (method, path),
            "query {:?}",
            call.query
        );
        call
    }

    /// Whether a request has arrived. It stays in the queue.
    pub(crate) async fn is_waiting(&mut self) -> bool {
        tokio::task::yield_now().await;
        self.peeked.is_some() || {
            let next = tokio::time::timeout(Duration::from_millis(1), self.handle.next_request()).await;
            self.peeked = next.ok().flatten();
            self.peeked.is_some()
        }
    }

    /// No request is in flight, and none was missed.
    pub(crate) async fn finish(mut self, cluster: Cluster) {
        drop(cluster);
        let next = tokio::time::timeout(Duration::from_millis(50), self.handle.next_request()).await;
        if let Ok(Some((request, _))) = next {
            panic!("one request too many: {} {}", request.method(), request.uri());
        }
    }
}

impl Call {
    pub(crate) fn query(&self, key: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(other, _)| other == key)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn answer(self, code: u16, body: Value) {
        self.answer_after(code, None, body);
    }

    pub(crate) fn answer_after(self, code: u16, retry_after: Option<u64>, body: Value) {
        let mut response = Response::builder()
            .status(code)
            .header("content-type", "application/json");
        if let Some(seconds) = retry_after {
            response = response.header("retry-after", seconds);
        }
        let body = Full::new(Bytes::from(body.to_string()))
            .map_err(io::Error::other)
            .boxed_unsync();
        self.reply.send_response(response.body(body).unwrap());
    }

    /// Answers with a `Status`.
    pub(crate) fn fail(self, code: u16, reason: &str, message: &str) {
        self.answer(code, status(code, reason, message));
    }

    /// Answers with a broken connection.
    pub(crate) fn break_off(self) {
        self.reply
            .send_error(io::Error::other("connection reset by peer"));
    }

    /// Answers with a stream of lines that stays open.
    pub(crate) fn stream(self) -> Lines {
        let (lines, rest) = mpsc::unbounded_channel::<Result<Bytes, io::Error>>();
        let rest = stream::unfold(rest, |mut rest| async move {
            rest.recv().await.map(|line| (line, rest))
        });
        let body = StreamBody::new(rest.map(|line| line.map(Frame::data))).boxed_unsync();
        self.reply
            .send_response(Response::builder().status(200).body(body).unwrap());
        Lines(lines)
    }

    /// Keeps the request waiting for ever.
    pub(crate) fn hang(self) -> SendResponse<Answer> {
        self.reply
    }
}

impl Lines {
    pub(crate) fn send(&self, kind: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        self.0
            .send(Ok(Bytes::from(line)))
            .expect("the watch has no listener");
    }

    pub(crate) fn bookmark(&self, version: &str) {
        self.send("BOOKMARK", &half_a_pod(version, json!({})));
    }

    pub(crate) fn end_of_list(&self, version: &str) {
        self.send(
            "BOOKMARK",
            &half_a_pod(version, json!({"k8s.io/initial-events-end": "true"})),
        );
    }

    pub(crate) fn break_off(self) {
        self.0
            .send(Err(io::Error::other("HTTP/2 stream not closed cleanly")))
            .expect("the watch has no listener");
    }
}

/// The content of a bookmark of a real server.
fn half_a_pod(version: &str, annotations: Value) -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"resourceVersion": version, "creationTimestamp": null, "annotations": annotations},
        "spec": {"containers": null}, "status": {},
    })
}

pub(crate) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
}

/// A 404 in the API server's format.
pub(crate) fn not_found(kind: &str, name: &str) -> Value {
    let mut body = status(404, "NotFound", &format!("{kind} \"{name}\" not found"));
    body["details"] = json!({"name": name, "kind": kind});
    body
}

pub(crate) fn pod(name: &str, version: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": version},
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    })
}

pub(crate) fn daemon_pod(name: &str, set: &str) -> Value {
    let mut pod = pod(name, "5");
    pod["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": format!("uid-{set}"), "controller": true},
    ]);
    pod
}

pub(crate) fn node(version: &str) -> Value {
    json!({"metadata": {"name": "n1", "uid": "uid-n1", "resourceVersion": version}, "spec": {}, "status": {}})
}

/// A stream that is read continuously, as in the driver.
pub(crate) struct Feed<T> {
    items: mpsc::UnboundedReceiver<T>,
    reader: tokio::task::JoinHandle<()>,
}

impl<T: Send + 'static> Feed<T> {
    pub(crate) fn of(stream: impl Stream<Item = T> + Send + 'static) -> Self {
        let (sender, items) = mpsc::unbounded_channel();
        let reader = tokio::spawn(async move {
            let mut stream = Box::pin(stream);
            while let Some(item) = stream.next().await {
                if sender.send(item).is_err() {
                    return;
                }
            }
        });
        Self { items, reader }
    }

    pub(crate) async fn next(&mut self) -> T {
        let next = tokio::time::timeout(LIMIT, self.items.recv()).await;
        next.expect("an item of the stream is missing")
            .expect("the stream has ended")
    }

    /// Stops reading. Unread items are unexpected.
    pub(crate) async fn stop(mut self) {
        self.reader.abort();
        assert!(
            (&mut self.reader).await.is_err(),
            "the stream has ended by itself"
        );
        assert!(
            self.items.recv().await.is_none(),
            "one item of the stream too many"
        );
    }
}

/// The three watches of a drain, once they are requested.
pub(crate) struct Watches {
    pub(crate) pods: Call,
    pub(crate) budgets: Call,
    pub(crate) nodes: Call,
}

impl Script {
    /// Takes the next three requests, which come in any order.
    pub(crate) async fn watches(&mut self) -> Watches {
        let mut calls = [self.next().await, self.next().await, self.next().await];
        calls.sort_by(|one, other| one.path.cmp(&other.path));
        let [nodes, pods, budgets] = calls;
        assert_eq!(
            (nodes.path.as_str(), pods.path.as_str()),
            ("/api/v1/nodes", "/api/v1/pods")
        );
        assert_eq!(budgets.path, "/apis/policy/v1/poddisruptionbudgets");
        Watches { pods, budgets, nodes }
    }
}

/// The feed of a node's watch, with only the pods' watch still to answer.
pub(crate) async fn pods_only(server: &mut Script, feed: &mut Feed<Event>) -> (Call, [Lines; 2]) {
    let watches = server.watches().await;
    let others = [watches.budgets.stream(), watches.nodes.stream()];
    others[0].end_of_list("1");
    others[1].send("ADDED", &node("1"));
    others[1].end_of_list("1");
    for _ in 0..2 {
        assert!(matches!(
            feed.next().await,
            Event::Budgets(_) | Event::Node(Some(_))
        ));
    }
    (watches.pods, others)
}
