//! A server under test: sends requests to it, and brings pods and budgets into a state.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, header};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// A step of a case that takes longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Actions that only the starter of the server can perform.
pub(crate) trait Control: Send + Sync {
    fn pause_server(&self);
    fn resume_server(&self);
    fn pause_controllers(&self);
    fn resume_controllers(&self);
}

/// A server, and a namespace on it.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) client: Client,
    /// A user without rights: `system:serviceaccount:default:nobody`.
    pub(crate) nobody: Client,
    pub(crate) control: Arc<dyn Control>,
    /// Lists of `lifecycle.k8s.io` come from CRDs.
    pub(crate) crds: bool,
    pub(crate) namespace: String,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Value,
    pub(crate) took: Duration,
}

impl Reply {
    pub(crate) fn at(&self, pointer: &str) -> Value {
        self.body.pointer(pointer).cloned().unwrap_or_default()
    }

    /// Code, reason, message, details, Retry-After: all parts of a refusal.
    #[track_caller]
    pub(crate) fn is_refusal(&self, code: u16, reason: Value, message: &str, details: Value) {
        let said = json!({"code": self.code, "reason": self.at("/reason"), "message": self.at("/message"),
            "details": self.at("/details")});
        let wanted = json!({"code": code, "reason": reason, "message": message, "details": details});
        assert_eq!(said, wanted);
        assert_eq!(
            (self.at("/kind"), self.at("/status")),
            (json!("Status"), json!("Failure"))
        );
    }

    #[track_caller]
    pub(crate) fn is(self, code: u16) -> Self {
        assert_eq!(self.code, code, "{}", self.body);
        self
    }
}

/// A pod for a case.
pub(crate) fn pod(name: &str, annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "it"}, "annotations": annotations},
        "spec": {"nodeName": "node-0", "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "none"}]}})
}

impl Subject {
    /// The same server, with a namespace for that case.
    pub(crate) async fn for_case(&self, name: &str) -> Self {
        let namespace = name.trim_matches('/').replace(['/', '_'], "-");
        let namespace = namespace
            .get(..namespace.len().min(60))
            .unwrap_or_default()
            .to_owned();
        let subject = Self {
            namespace,
            ..self.clone()
        };
        subject.make_namespace(&subject.namespace).await;
        subject
    }

    pub(crate) async fn make_namespace(&self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.post("/api/v1/namespaces", object).await.is(201);
    }

    /// Sends a request, and reads the whole answer.
    pub(crate) async fn ask(&self, method: &str, path: &str, content_type: &str, body: Value) -> Reply {
        self.ask_as(&self.client, method, path, content_type, body).await
    }

    pub(crate) async fn ask_as(
        &self,
        client: &Client,
        method: &str,
        path: &str,
        content_type: &str,
        body: Value,
    ) -> Reply {
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::ACCEPT, "application/json")
            .body(Body::from(bytes))
            .unwrap();
        let begun = Instant::now();
        let reply = timeout(Duration::from_secs(60), client.send(request))
            .await
            .unwrap()
            .unwrap();
        let code = reply.status().as_u16();
        let retry_after = reply
            .headers()
            .get(header::RETRY_AFTER)
            .map(|it| it.to_str().unwrap().to_owned());
        let bytes = reply.into_body().collect_bytes().await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Reply {
            code,
            retry_after,
            body,
            took: begun.elapsed(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "application/json", Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.ask("POST", path, "application/json", body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.ask("PUT", path, "application/json", body).await
    }

    pub(crate) async fn delete(&self, path: &str, body: Value) -> Reply {
        self.ask("DELETE", path, "application/json", body).await
    }

    pub(crate) async fn merge(&self, path: &str, body: Value) -> Reply {
        self.ask("PATCH", path, "application/merge-patch+json", body)
            .await
    }

    pub(crate) fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    pub(crate) fn pod_path(&self, name: &str) -> String {
        format!("{}/{name}", self.pods())
    }

    pub(crate) async fn the_pod(&self, name: &str) -> Value {
        self.get(&self.pod_path(name)).await.is(200).body
    }

    /// Creates a pod and waits until it runs and is ready, also in the server's cache: requests for version 0 are
    /// answered from there, and a stale cache reports the pod's way to readiness as changes.
    pub(crate) async fn runs(&self, name: &str) -> Value {
        self.runs_with(name, json!({})).await
    }

    pub(crate) async fn runs_with(&self, name: &str, annotations: Value) -> Value {
        self.made(pod(name, annotations)).await;
        let pod = self.pod_is(name, |pod| ready(pod) == "True").await;
        let version = |pod: &Value| pod["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
        let cached = format!("{}?resourceVersion=0", self.pod_path(name));
        self.becomes(&cached, |reply| version(&reply.body) >= version(&pod))
            .await;
        pod
    }

    pub(crate) async fn made(&self, pod: Value) {
        self.post(&self.pods(), pod).await.is(201);
    }

    /// Waits until the pod satisfies the condition.
    pub(crate) async fn pod_is(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = self.pod_path(name);
        self.becomes(&path, |reply| reply.code == 200 && wanted(&reply.body))
            .await
            .body
    }

    pub(crate) async fn pod_goes(&self, name: &str) {
        let path = self.pod_path(name);
        self.becomes(&path, |reply| reply.code == 404).await;
    }

    /// Waits until a GET satisfies the condition.
    pub(crate) async fn becomes(&self, path: &str, wanted: impl Fn(&Reply) -> bool) -> Reply {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let reply = self.get(path).await;
            if wanted(&reply) {
                return reply;
            }
            assert!(
                Instant::now() < deadline,
                "{path} stays {} {}",
                reply.code,
                reply.body
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn budget_path(&self, name: &str) -> String {
        format!(
            "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/{name}",
            self.namespace
        )
    }

    /// Creates a budget over all pods of the namespace, without waiting for it.
    pub(crate) async fn budget_made(&self, name: &str, spec: Value) {
        let mut spec = spec;
        spec.as_object_mut()
            .unwrap()
            .insert("selector".to_owned(), json!({"matchLabels": {"app": "it"}}));
        let object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec});
        let path = format!(
            "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
            self.namespace
        );
        self.post(&path, object).await.is(201);
    }

    /// Creates a budget and waits until it allows this many disruptions of that many healthy pods.
    pub(crate) async fn budget(&self, name: &str, spec: Value, allowed: i64, healthy: i64) {
        self.budget_made(name, spec).await;
        self.budget_is(name, allowed, healthy).await;
    }

    pub(crate) async fn budget_is(&self, name: &str, allowed: i64, healthy: i64) {
        self.becomes(&self.budget_path(name), |reply| {
            reply.at("/status/observedGeneration") == 1
                && reply.at("/status/disruptionsAllowed") == allowed
                && reply.at("/status/currentHealthy") == healthy
        })
        .await;
    }

    pub(crate) async fn evict(&self, name: &str, delete_options: Value) -> Reply {
        let path = format!("{}/eviction", self.pod_path(name));
        self.post(&path, eviction(name, delete_options)).await
    }

    /// Opens a watch on the namespace's pods.
    pub(crate) async fn watch(&self, query: &str) -> Watching {
        self.watch_of(&self.pods(), query).await
    }

    pub(crate) async fn watch_of(&self, collection: &str, query: &str) -> Watching {
        let request = Request::get(format!("{collection}?watch=1&{query}"))
            .body(Vec::new())
            .unwrap();
        let stream = timeout(PATIENCE, self.client.request_stream(request))
            .await
            .unwrap()
            .unwrap();
        Watching {
            lines: Box::pin(stream),
        }
    }
}

pub(crate) fn eviction(name: &str, delete_options: Value) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": delete_options})
}

pub(crate) fn ready(pod: &Value) -> String {
    let conditions = pod
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let ready = conditions
        .iter()
        .find(|it| it["type"] == "Ready")
        .cloned()
        .unwrap_or_default();
    ready["status"].as_str().unwrap_or_default().to_owned()
}

type Lines = Pin<Box<dyn futures::AsyncBufRead + Send>>;

/// An open watch.
pub(crate) struct Watching {
    lines: Lines,
}

impl Watching {
    /// The next event; nothing if the server has ended the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        timeout(PATIENCE, self.read()).await.unwrap()
    }

    async fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = futures::AsyncBufReadExt::read_line(&mut self.lines, &mut line)
            .await
            .unwrap();
        if read == 0 {
            None
        } else {
            Some(serde_json::from_str(&line).unwrap())
        }
    }

    /// Nothing arrives for this long.
    pub(crate) async fn is_silent_for(&mut self, time: Duration) {
        if let Ok(event) = timeout(time, self.read()).await {
            assert_eq!(event, None, "silence was expected");
        }
    }

    /// The types of the next events, with the names of their objects. A BOOKMARK may arrive at any time and is skipped.
    pub(crate) async fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        while names.len() < count {
            let event = self.next().await.unwrap();
            if event["type"] == "BOOKMARK" {
                continue;
            }
            let name = event
                .pointer("/object/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or("-");
            names.push(format!("{} {name}", event["type"].as_str().unwrap()));
        }
        names
    }

    /// Everything until the stream ends.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(event) = self.next().await {
            rest.push(event);
        }
        rest
    }
}
