//! One node: an API server, a kubelet that speaks SLM, and the drivers that a scenario starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kube::Client;
use scupper_simulator::api::{self, ApiServer};
use scupper_simulator::kubelet::{Entry, Kind, Kubelet, KubeletHandle, Options, Timing};
use serde_json::{Value, json};

use crate::driver::Driver;
pub(crate) use crate::limit::LIMIT;

pub(crate) const NODE: &str = "worker-1";
/// The driver's name, and that of its drain transition.
pub(crate) const DRIVER: &str = "drain.example";
pub(crate) const UNCORDON: &str = "drain.example-uncordon";
pub(crate) const START: &str = "drain-started";
pub(crate) const END: &str = "drain-complete";
const EVENTS: &str = "lifecycleevents.lifecycle.k8s.io";
const TRANSITIONS: &str = "lifecycletransitions.lifecycle.k8s.io";

pub(crate) struct Rig {
    pub(crate) api: ApiServer,
    pub(crate) kubelet: KubeletHandle,
    folder: tempfile::TempDir,
    drivers: AtomicUsize,
}

/// About fifty times as fast as on a node. Waits for a process under load keep their time.
pub(crate) fn timing() -> Timing {
    Timing {
        pass_pause: Duration::from_millis(200),
        readiness: Duration::from_secs(2),
        cleanup_delay: Duration::from_secs(2),
        sync_poll: Duration::from_millis(500),
        registry_tick: Duration::from_millis(50),
        backoff: Duration::from_millis(50),
        reconnect: Duration::from_millis(50),
        ..Timing::default()
    }
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::on(api::Options::default(), change).await
    }

    /// On an API server like this.
    pub(crate) async fn on(server: api::Options, change: impl FnOnce(&mut Options)) -> Self {
        let api = ApiServer::start(server).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), api.kubeconfig()).unwrap();
        let mut config = api.client_config();
        config.auth_info.token = Some(format!("system:node:{NODE}").into());
        let client = Client::try_from(config).unwrap();
        let mut options = Options::new(client, NODE, folder.path().join("kubelet"));
        options.timing = timing();
        change(&mut options);
        let kubelet = Kubelet::start(options).unwrap();
        let rig = Self {
            api,
            kubelet,
            folder,
            drivers: AtomicUsize::new(0),
        };
        rig.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "scupper"}}));
        rig.apply(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        );
        rig
    }

    /// Starts a driver, without waiting for anything.
    pub(crate) fn spawn(&self, more: &[&str]) -> Driver {
        self.spawn_into(self.folder.path(), more)
    }

    /// Starts a driver that logs to a file in this folder.
    pub(crate) fn spawn_into(&self, folder: &Path, more: &[&str]) -> Driver {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let root = text(self.kubelet.root().to_owned());
        let kubeconfig = text(self.kubeconfig());
        let usual = [
            "--driver-name",
            DRIVER,
            "--node-name",
            NODE,
            "--kubelet-root",
            &root,
            "--kubeconfig",
            &kubeconfig,
        ];
        let arguments: Vec<String> = usual.iter().chain(more).map(ToString::to_string).collect();
        Driver::spawn(folder, self.drivers.fetch_add(1, Ordering::Relaxed), &arguments)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Starts a driver and waits until it is registered and its transition is published.
    pub(crate) async fn driver(&self, more: &[&str]) -> Driver {
        let before = self.registrations();
        let mut driver = self.spawn(more);
        self.until("the driver is registered", || {
            assert!(driver.is_running(), "it ended:\n{}", driver.log());
            self.registrations() > before
                && self
                    .list(TRANSITIONS)
                    .iter()
                    .any(|it| it["spec"]["driver"] == DRIVER)
        })
        .await;
        driver
    }

    /// The number of registrations of a driver so far.
    pub(crate) fn registrations(&self) -> usize {
        self.kubelet
            .record()
            .pick(|entry| matches!(entry, Entry::Registered { .. }).then_some(()))
            .len()
    }

    pub(crate) fn endpoints(&self) -> Vec<PathBuf> {
        self.kubelet.registered().remove(DRIVER).unwrap_or_default()
    }

    pub(crate) fn apply(&self, object: Value) -> Value {
        self.api.store().apply(object).unwrap()
    }

    /// Pods of a controller, by these names.
    pub(crate) fn pods(&self, names: &[&str]) {
        for name in names {
            self.apply(crate::objects::pod(name));
        }
    }

    /// The names of the existing pods.
    pub(crate) fn pod_names(&self) -> Vec<String> {
        self.list("pods").iter().map(|pod| name(pod).to_owned()).collect()
    }

    pub(crate) fn event(&self, name: &str, transition: &str) -> Value {
        self.apply(json!({
            "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent", "metadata": {"name": name},
            "spec": {"transitionName": transition, "bindingNode": NODE}, "status": {"claimStatus": "Pending"},
        }))
    }

    pub(crate) fn transition(&self, name: &str, spec: Value) {
        self.apply(json!({
            "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleTransition", "metadata": {"name": name},
            "spec": spec,
        }));
    }

    pub(crate) fn get_event(&self, name: &str) -> Option<Value> {
        self.api.store().get(EVENTS, "", name)
    }

    pub(crate) fn delete_event(&self, name: &str) {
        self.api.store().delete_gracefully(EVENTS, "", name).unwrap();
    }

    pub(crate) fn get_transition(&self, name: &str) -> Option<Value> {
        self.api.store().get(TRANSITIONS, "", name)
    }

    pub(crate) fn edit_transition(&self, name: &str, change: impl FnOnce(&mut Value)) {
        self.api.store().edit(TRANSITIONS, "", name, change).unwrap();
    }

    pub(crate) fn delete_transition(&self, name: &str) {
        self.api.store().delete(TRANSITIONS, "", name).unwrap();
    }

    pub(crate) fn delete_budget(&self) {
        self.api
            .store()
            .delete("poddisruptionbudgets.policy", "default", "web")
            .unwrap();
    }

    pub(crate) fn node(&self) -> Value {
        self.api.store().get("nodes", "", NODE).unwrap()
    }

    pub(crate) fn is_cordoned(&self) -> bool {
        self.node()["spec"]["unschedulable"] == true
    }

    /// The reason of a node condition; nothing without the condition.
    pub(crate) fn reason(&self, condition: &str) -> Option<String> {
        let node = self.node();
        let conditions = node["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let ours = conditions.into_iter().find(|it| it["type"] == condition)?;
        Some(ours["reason"].as_str().unwrap_or_default().to_owned())
    }

    /// The SLM condition as an earlier event left it.
    pub(crate) fn set_reason(&self, reason: &str) {
        let condition = json!({"type": "LifecycleTransition", "status": "True", "reason": reason});
        let set = |node: &mut Value| {
            let conditions = node["status"]["conditions"].as_array_mut().unwrap();
            conditions.retain(|it| it["type"] != "LifecycleTransition");
            conditions.push(condition);
        };
        self.api.store().edit("nodes", "", NODE, set).unwrap();
    }

    pub(crate) fn list(&self, resource: &str) -> Vec<Value> {
        self.api.store().list(resource)
    }

    /// Kubernetes Events with this reason.
    pub(crate) fn reported(&self, reason: &str) -> bool {
        ["events", "events.events.k8s.io"]
            .iter()
            .any(|it| self.list(it).iter().any(|it| it["reason"] == reason))
    }

    /// Waits for the terminal status of an event, and until the event is gone.
    pub(crate) async fn end_of(&self, event: &str) -> String {
        let status = self.status_of(event).await;
        self.until("the event is deleted", || self.get_event(event).is_none())
            .await;
        status
    }

    /// Waits for the terminal status of an event.
    pub(crate) async fn status_of(&self, event: &str) -> String {
        let finished = || {
            self.kubelet
                .record()
                .finished()
                .into_iter()
                .find(|(name, _)| name == event)
        };
        let waited = self.kubelet.wait_for(|_| finished().is_some(), LIMIT).await;
        waited.unwrap_or_else(|why| panic!("{event} did not end: {why}"));
        finished().unwrap().1
    }

    /// Waits for this many more passes.
    pub(crate) async fn passes(&self, more: usize) {
        let before = self.kubelet.passes().len();
        self.kubelet
            .wait_for(|record| record.passes().len() >= before + more, LIMIT)
            .await
            .unwrap();
    }

    /// Waits until the driver has answered this many calls of this kind.
    pub(crate) async fn called(&self, kind: Kind, times: usize) {
        let count = || self.calls().iter().filter(|it| **it == kind).count();
        self.kubelet.wait_for(|_| count() >= times, LIMIT).await.unwrap();
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> Vec<Kind> {
        self.kubelet.calls().into_iter().map(|call| call.kind).collect()
    }

    /// The answers to evictions, by pod.
    pub(crate) fn evictions(&self) -> BTreeMap<String, Vec<Option<u16>>> {
        let mut evictions: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for request in self
            .api
            .requests()
            .into_iter()
            .filter(|it| it.subresource == "eviction")
        {
            let pod = request.path.split('/').rev().nth(1).unwrap().to_owned();
            evictions.entry(pod).or_default().push(request.status);
        }
        evictions
    }

    /// No pod was evicted twice. A name is one pod here: none is recreated under its name.
    pub(crate) fn check_evicted_at_most_once(&self) {
        for (pod, answers) in self.evictions() {
            let evicted = answers.iter().filter(|answer| **answer == Some(201)).count();
            assert!(evicted <= 1, "{pod} was evicted {evicted} times: {answers:?}");
        }
    }

    /// Waits until the condition holds.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            if begun.elapsed() > LIMIT {
                panic!(
                    "not within {LIMIT:?}: {what}; the kubelet did, last:\n{}",
                    self.kubelet.record().tail()
                );
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn claim(event: &Value) -> &str {
    event["status"]["claimStatus"].as_str().unwrap_or_default()
}

pub(crate) fn finalizers(event: &Value) -> Vec<&str> {
    event["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
