//! An API server with one node, and helpers for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::discovery::ApiResource;
use kube::runtime::watcher;
use kube::{Client, Resource};
use scupper_simulator::api::{self, ApiServer};
use scupper_simulator::kubelet::Options;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::world::LIMIT;

const NODE: &str = "worker-1";

pub(crate) struct Cluster {
    server: ApiServer,
    events: Api<DynamicObject>,
    transitions: Api<DynamicObject>,
    nodes: Api<Node>,
    kinds: (ApiResource, ApiResource),
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let server = ApiServer::start(api::Options::default()).await.unwrap();
        let client = Client::try_from(server.client_config()).unwrap();
        let kinds = Options::new(client.clone(), NODE, "");
        let cluster = Self {
            server,
            events: Api::all_with(client.clone(), &kinds.events),
            transitions: Api::all_with(client.clone(), &kinds.transitions),
            nodes: Api::all(client),
            kinds: (kinds.events, kinds.transitions),
        };
        for name in [NODE, "worker-2"] {
            let node: Node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            cluster.nodes.create(&PostParams::default(), &node).await.unwrap();
        }
        cluster
    }

    /// The kubelet's client: with the permissions of a node, and no more.
    pub(crate) fn client(&self) -> Client {
        let mut config = self.server.client_config();
        config.auth_info.token = Some(format!("system:node:{NODE}").into());
        Client::try_from(config).unwrap()
    }

    pub(crate) async fn transition(&self, name: &str, spec: Value) {
        let object = DynamicObject::new(name, &self.kinds.1).data(json!({"spec": spec}));
        self.transitions
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    /// Changes fields of a transition.
    pub(crate) async fn set(&self, name: &str, patch: Value) {
        self.transitions
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    pub(crate) async fn has_transition(&self, name: &str) -> bool {
        self.transitions.get_opt(name).await.unwrap().is_some()
    }

    pub(crate) async fn delete_transition(&self, name: &str) {
        self.transitions
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    pub(crate) async fn transition_gone(&self, name: &str) {
        gone(&self.transitions, name).await;
    }

    pub(crate) async fn event(&self, name: &str, transition: &str) {
        self.event_with(name, transition, json!({})).await;
    }

    pub(crate) async fn event_with(&self, name: &str, transition: &str, metadata: Value) {
        let spec = json!({"spec": {"transitionName": transition, "bindingNode": NODE}});
        let mut object = DynamicObject::new(name, &self.kinds.0).data(spec);
        object.metadata.finalizers = metadata
            .get("finalizers")
            .map(|finalizers| serde_json::from_value(finalizers.clone()).unwrap());
        self.events.create(&PostParams::default(), &object).await.unwrap();
    }

    pub(crate) async fn get(&self, name: &str) -> Option<DynamicObject> {
        self.events.get_opt(name).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.events.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn gone(&self, name: &str) {
        gone(&self.events, name).await;
    }

    pub(crate) async fn set_status(&self, name: &str, status: Value) {
        let mut event = self.get(name).await.unwrap();
        event.data["status"] = status;
        self.events
            .replace_status(name, &PostParams::default(), &event)
            .await
            .unwrap();
    }

    pub(crate) async fn node(&self) -> Node {
        self.nodes.get(NODE).await.unwrap()
    }

    /// The node's condition as an earlier event left it.
    pub(crate) async fn set_reason(&self, reason: &str) {
        let condition = json!({"type": "LifecycleTransition", "status": "True", "reason": reason});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        self.nodes
            .patch_status(NODE, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Watches the number of simultaneous claims.
    pub(crate) async fn watch_claims(&self) -> Claims {
        let claims = Arc::new(Mutex::new((BTreeMap::<String, bool>::new(), 0)));
        let seen = Arc::clone(&claims);
        let mut stream = watcher(self.events.clone(), watcher::Config::default()).boxed();
        while !matches!(stream.try_next().await.unwrap(), Some(watcher::Event::InitDone)) {}
        let task = tokio::spawn(async move {
            while let Some(Ok(event)) = stream.next().await {
                let mut seen = seen.lock().unwrap();
                match event {
                    watcher::Event::Apply(event) => {
                        seen.0
                            .insert(event.meta().name.clone().unwrap(), status(&event) == "Claimed");
                    }
                    watcher::Event::Delete(event) => {
                        seen.0.remove(event.meta().name.as_ref().unwrap());
                    }
                    _ => {}
                }
                let now = seen.0.values().filter(|claimed| **claimed).count();
                seen.1 = seen.1.max(now);
            }
        });
        Claims { claims, task }
    }
}

type ClaimCounts = (BTreeMap<String, bool>, usize);

pub(crate) struct Claims {
    claims: Arc<Mutex<ClaimCounts>>,
    task: JoinHandle<()>,
}

impl Claims {
    pub(crate) fn most_at_once(&self) -> usize {
        self.claims.lock().unwrap().1
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits until the object is gone.
async fn gone(objects: &Api<DynamicObject>, name: &str) {
    let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut stream = watcher(objects.clone(), one).boxed();
    let wait = async {
        let mut there = false;
        loop {
            match stream.try_next().await.unwrap() {
                Some(watcher::Event::InitApply(_) | watcher::Event::Apply(_)) => there = true,
                Some(watcher::Event::Delete(_)) => return,
                Some(watcher::Event::InitDone) if !there => return,
                _ => {}
            }
        }
    };
    timeout(LIMIT, wait)
        .await
        .unwrap_or_else(|_| panic!("{name} is still there"));
}

pub(crate) fn status(event: &DynamicObject) -> &str {
    event.data["status"]["claimStatus"].as_str().unwrap_or_default()
}

pub(crate) fn finalizers(event: &DynamicObject) -> Vec<String> {
    event.metadata.finalizers.clone().unwrap_or_default()
}

pub(crate) fn condition(node: &Node) -> Option<NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|condition| condition.type_ == "LifecycleTransition")
        .cloned()
}

pub(crate) fn reason(node: &Node) -> String {
    condition(node)
        .and_then(|condition| condition.reason)
        .unwrap_or_default()
}

/// A wall clock that a test sets.
pub(crate) struct Hands(Arc<Mutex<Timestamp>>);

impl Hands {
    pub(crate) fn at(moment: &str) -> Self {
        Self(Arc::new(Mutex::new(moment.parse().unwrap())))
    }

    pub(crate) fn now(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let hands = Arc::clone(&self.0);
        Arc::new(move || *hands.lock().unwrap())
    }

    pub(crate) fn forward(&self, time: Duration) {
        let mut hands = self.0.lock().unwrap();
        *hands = hands
            .checked_add(SignedDuration::try_from(time).unwrap())
            .unwrap();
    }
}
