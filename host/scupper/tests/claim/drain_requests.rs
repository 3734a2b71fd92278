//! DrainRequests, with a player of node-drainer's part: it creates a request from its template, polls one condition, and
//! deletes the request once that is True. A cordon of the node is fault-quarantine's.

use std::fs;
use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, PostParams};
use scupper_simulator::api::{self, Kind};
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::guests::guest;
use crate::node::Node;
use crate::objects::{closed_budget, pod, slow};
use crate::rig::{DRIVER, NODE, Rig, UNCORDON};
use crate::scrape::scrape;

const GROUP: &str = "nvsentinel.nvidia.com";
const NAMESPACE: &str = "nvsentinel";

/// A node of a cluster with NVSentinel, and node-drainer.
pub(crate) struct Site {
    node: Node,
    group: &'static str,
    requests: Api<DynamicObject>,
    folder: tempfile::TempDir,
}

impl std::ops::Deref for Site {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

fn resource(group: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: format!("{group}/v1alpha1"),
        kind: "DrainRequest".to_owned(),
        plural: "drainrequests".to_owned(),
    }
}

/// As node-drainer writes it.
fn request(id: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "DrainRequest",
        "metadata": {"name": format!("drain-{NODE}-{id}"), "namespace": NAMESPACE,
            "labels": {"nvsentinel.nvidia.com/node-name": NODE}},
        "spec": {"nodeName": NODE, "checkName": "GpuXidError", "recommendedAction": "RESTART_BM", "errorCode": ["48"],
            "healthEventID": id, "reason": "XID 48", "entitiesImpacted": [{"type": "GPU_UUID", "value": "GPU-1"}],
            "metadata": {}, "podsToDrain": {"default": ["a"]}},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

impl Site {
    pub(crate) async fn start() -> Self {
        Self::of_group(GROUP).await
    }

    /// Its DrainRequests are in this group.
    pub(crate) async fn of_group(group: &'static str) -> Self {
        let options = api::Options {
            kinds: vec![Kind::custom(group, "v1alpha1", "drainrequests", "DrainRequest").namespaced()],
            ..api::Options::default()
        };
        let node = Node::with(Rig::on(options, |options| options.gate = false).await).await;
        let client = kube::Client::try_from(node.api.client_config()).unwrap();
        node.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}));
        node.api
            .store()
            .edit("nodes", "", NODE, |it| it["spec"]["unschedulable"] = json!(true))
            .unwrap();
        Self {
            requests: Api::namespaced_with(client, NAMESPACE, &resource(group)),
            group,
            node,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A driver with this under `drain-requests`, and more of a configuration.
    pub(crate) async fn driver(&self, drain_requests: Value, policies: Value) -> Driver {
        self.driver_that_drains(drain_requests, policies, json!({})).await
    }

    /// The same with this under `drain`.
    pub(crate) async fn driver_that_drains(
        &self,
        drain_requests: Value,
        policies: Value,
        drain: Value,
    ) -> Driver {
        self.driver_with(drain_requests, policies, drain, &[]).await
    }

    async fn driver_with(
        &self,
        drain_requests: Value,
        policies: Value,
        drain: Value,
        more: &[&str],
    ) -> Driver {
        let file = self.folder.path().join("scupper.yaml");
        let config = json!({"apiVersion": "scupper.dev/v1alpha1", "kind": "Configuration", "policies": policies,
            "drain-requests": drain_requests, "drain": drain});
        fs::write(&file, config.to_string()).unwrap();
        self.claimer(&[&["--config", file.to_str().unwrap()], more].concat())
            .await
    }

    pub(crate) async fn usual_driver(&self) -> Driver {
        self.driver(json!({}), json!([])).await
    }

    pub(crate) async fn create(&self, id: &str, spec: Value) {
        let mut object = request(id, spec);
        object["apiVersion"] = json!(format!("{}/v1alpha1", self.group));
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        self.requests
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    pub(crate) async fn delete(&self, id: &str) {
        let name = format!("drain-{NODE}-{id}");
        self.requests
            .delete(&name, &DeleteParams::default())
            .await
            .unwrap();
    }

    fn conditions(&self, id: &str) -> Vec<Value> {
        let stored = self.api.store().get(
            &format!("drainrequests.{}", self.group),
            NAMESPACE,
            &format!("drain-{NODE}-{id}"),
        );
        let stored = stored.unwrap();
        stored["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    /// `True Drained`; nothing without the condition.
    pub(crate) fn condition(&self, id: &str, kind: &str) -> String {
        let mut conditions = self.conditions(id).into_iter();
        let found = conditions.find(|condition| condition["type"] == kind);
        let text = |found: Value| {
            format!(
                "{} {}",
                found["status"].as_str().unwrap(),
                found["reason"].as_str().unwrap()
            )
        };
        found.map(text).unwrap_or_default()
    }

    pub(crate) fn message(&self, id: &str, kind: &str) -> String {
        let mut conditions = self.conditions(id).into_iter();
        let found = conditions.find(|condition| condition["type"] == kind).unwrap();
        found["message"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn becomes(&self, id: &str, kind: &str, wanted: &str) {
        self.until(&format!("{kind} of {id} is {wanted}"), || {
            self.condition(id, kind) == wanted
        })
        .await;
    }

    pub(crate) async fn pods_are_asked_to_leave(&self) {
        self.until("pods are asked to leave", || !self.evictions().is_empty())
            .await;
    }

    /// Waits until the driver has done its pending work: an event is carried out after it.
    async fn settled(&self) {
        let event = format!("settle-{}", self.story().len());
        self.event(&event, UNCORDON);
        self.end_of(&event).await;
    }
}

#[tokio::test]
async fn node_drainer_gets_its_answer_and_the_quarantine_cordon_stays() {
    let site = Site::start().await;
    site.apply(slow(pod("a"), Duration::from_secs(1)));
    site.pods(&["b"]);
    let driver = site.usual_driver().await;
    let mut seen = request("1", json!({}));
    let foreign = json!({"type": "Seen", "status": "True", "reason": "ByOthers", "message": "", "more": 1,
        "lastTransitionTime": "2026-09-01T10:00:00Z"});
    seen["status"] = json!({"conditions": [foreign]});
    site.apply(seen);
    site.becomes("1", "DrainInProgress", "True Draining").await;
    site.becomes("1", "DrainComplete", "True Drained").await;
    assert!(site.pod_names().is_empty(), "complete while a pod is still there");
    assert_eq!(
        site.message("1", "DrainComplete"),
        "2 pods evicted, 0 kept as planned"
    );
    assert_eq!(site.condition("1", "DrainInProgress"), "False Drained");
    assert_eq!(site.conditions("1")[0], foreign);
    site.delete("1").await;
    site.settled().await;
    assert!(site.is_cordoned(), "it is not ours to lift");
    site.check_evicted_at_most_once();
    assert!(
        driver.output().contains("drain-worker-1-1"),
        "{}",
        driver.output()
    );
}

#[tokio::test]
async fn requests_for_one_node_become_one_drain_and_each_is_answered() {
    let site = Site::start().await;
    site.pods(&["a", "b"]);
    site.apply(closed_budget());
    let _driver = site.usual_driver().await;
    site.create("1", json!({})).await;
    site.pods_are_asked_to_leave().await;
    for id in ["2", "3"] {
        site.create(id, json!({})).await;
        site.becomes(id, "DrainInProgress", "True Draining").await;
    }
    // The drain goes on without the request that began it.
    site.delete("1").await;
    site.delete_budget();
    for id in ["2", "3"] {
        site.becomes(id, "DrainComplete", "True Drained").await;
    }
    assert!(site.pod_names().is_empty());
    site.check_evicted_at_most_once();
}

#[tokio::test]
async fn the_deletion_of_all_requests_cancels_the_drain() {
    let site = Site::start().await;
    site.pods(&["a", "b"]);
    site.apply(closed_budget());
    let _driver = site.usual_driver().await;
    for id in ["1", "2"] {
        site.create(id, json!({})).await;
    }
    site.pods_are_asked_to_leave().await;
    for id in ["1", "2"] {
        site.delete(id).await;
    }
    site.until("the drain is cancelled", || {
        site.reason("DrainInProgress").as_deref() == Some("DrainCancelled")
    })
    .await;
    let before = site.evictions();
    site.delete_budget();
    site.settled().await;
    assert_eq!(site.evictions(), before, "evicted after the deletion");
    assert!(site.is_cordoned());
}

#[tokio::test]
async fn an_answered_request_is_no_drain_of_today() {
    let site = Site::start().await;
    site.pods(&["a"]);
    for (id, kind) in [("1", "DrainComplete"), ("2", "DrainFailed")] {
        let mut old = request(id, json!({}));
        old["status"] = json!({"conditions": [{"type": kind, "status": "True", "reason": "Yesterday", "message": "",
            "lastTransitionTime": "2026-09-01T10:00:00Z"}]});
        site.apply(old);
    }
    let _driver = site.usual_driver().await;
    site.settled().await;
    assert_eq!(site.pod_names(), ["a"]);
    for (id, kind) in [("1", "DrainComplete"), ("2", "DrainFailed")] {
        assert_eq!(site.condition(id, kind), "True Yesterday");
        assert_eq!(site.conditions(id).len(), 1);
    }
    // A new one is.
    site.create("3", json!({})).await;
    site.becomes("3", "DrainComplete", "True Drained").await;
    assert!(site.pod_names().is_empty());
}

#[tokio::test]
async fn a_request_fails_at_its_deadline_and_says_what_is_still_there() {
    let site = Site::start().await;
    site.pods(&["a"]);
    site.apply(closed_budget());
    let _driver = site.driver(json!({"timeout": "3s"}), json!([])).await;
    site.create("1", json!({})).await;
    site.becomes("1", "DrainFailed", "True DeadlineExceeded").await;
    let message = site.message("1", "DrainFailed");
    assert_eq!(message, "the deadline passed with one pod still there: default/a");
    assert_eq!(site.condition("1", "DrainComplete"), "");
    let before = site.evictions();
    site.delete_budget();
    site.settled().await;
    assert_eq!(site.evictions(), before);
    assert_eq!(site.pod_names(), ["a"]);
}

#[tokio::test]
async fn a_policy_that_holds_the_drain_defers_it() {
    let site = Site::start().await;
    site.pods(&["a", "hold-1"]);
    let policy = json!([{"name": "five", "module": guest("five_steps")}]);
    let _driver = site.driver(json!({}), policy).await;
    site.create("1", json!({})).await;
    site.becomes("1", "DrainDeferred", "True PolicyHolds").await;
    assert_eq!(site.message("1", "DrainDeferred"), "five (before-drain): held");
    assert_eq!(site.condition("1", "DrainInProgress"), "True Draining");
    site.api.store().delete("pods", "default", "hold-1").unwrap();
    site.becomes("1", "DrainComplete", "True Drained").await;
    assert_eq!(site.condition("1", "DrainDeferred"), "False NotHeld");
}

#[tokio::test]
async fn a_killed_driver_continues_and_cancels_what_nothing_asks_for_any_more() {
    let site = Site::start().await;
    site.pods(&["a", "b"]);
    site.apply(closed_budget());
    let mut driver = site.usual_driver().await;
    site.create("1", json!({})).await;
    site.pods_are_asked_to_leave().await;
    driver.kill();
    let mut driver = site.usual_driver().await;
    let asked = site.evictions().len();
    assert!(asked > 0);
    site.until("the drain goes on", || {
        driver.output().contains("drain-worker-1-1")
    })
    .await;
    driver.kill();
    site.delete("1").await;
    let driver = site.usual_driver().await;
    site.until("the drain is cancelled", || {
        site.reason("DrainInProgress").as_deref() == Some("DrainCancelled")
    })
    .await;
    site.delete_budget();
    site.settled().await;
    assert_eq!(site.pod_names(), ["a", "b"], "{}", driver.output());
    site.create("2", json!({})).await;
    site.becomes("2", "DrainComplete", "True Drained").await;
    site.check_evicted_at_most_once();
}

#[tokio::test]
async fn without_its_configuration_a_driver_ends_the_drain_that_it_finds() {
    let site = Site::start().await;
    site.pods(&["a"]);
    site.apply(closed_budget());
    let mut driver = site.usual_driver().await;
    site.create("1", json!({})).await;
    site.pods_are_asked_to_leave().await;
    driver.kill();
    let _driver = site.claimer(&[]).await;
    site.until("the drain is cancelled", || {
        site.reason("DrainInProgress").as_deref() == Some("DrainCancelled")
    })
    .await;
    site.delete_budget();
    site.settled().await;
    assert_eq!(site.pod_names(), ["a"]);
}

#[tokio::test]
async fn a_request_and_an_event_run_one_drain_at_a_time() {
    let site = Site::start().await;
    site.apply(slow(pod("a"), Duration::from_secs(8)));
    site.pods(&["b", "c"]);
    let _driver = site.usual_driver().await;
    site.event("drain", DRIVER);
    site.pods_are_asked_to_leave().await;
    site.create("1", json!({})).await;
    site.becomes("1", "DrainInProgress", "False Waiting").await;
    site.becomes("1", "DrainComplete", "True Drained").await;
    assert!(site.pod_names().is_empty());
    site.check_evicted_at_most_once();
}

#[tokio::test]
async fn with_partial_only_the_named_pods_leave() {
    let site = Site::start().await;
    site.pods(&["a", "b"]);
    let mut elsewhere = pod("elsewhere");
    elsewhere["spec"]["nodeName"] = json!("worker-2");
    site.apply(elsewhere);
    let _driver = site.driver(json!({"partial": true}), json!([])).await;
    let named = json!({"podsToDrain": {"default": ["a", "elsewhere", "gone"], "other": ["b"]}});
    site.create("1", named).await;
    site.becomes("1", "DrainComplete", "True Drained").await;
    assert_eq!(
        site.message("1", "DrainComplete"),
        "1 pod evicted, 1 kept as planned"
    );
    assert_eq!(site.reason("Drained"), None, "the node is not drained");
    assert_eq!(site.pod_names(), ["b", "elsewhere"]);
    site.create("2", json!({"podsToDrain": {}})).await;
    site.becomes("2", "DrainComplete", "True NoPods").await;
    site.create("3", json!({"podsToDrain": ["b"]})).await;
    site.becomes("3", "DrainFailed", "True InvalidRequest").await;
    assert_eq!(site.pod_names(), ["b", "elsewhere"]);
    let mut many: Vec<_> = (0..10_000).map(|number| format!("pod-{number}")).collect();
    many.push("b".to_owned());
    site.create("4", json!({"podsToDrain": {"default": many}})).await;
    site.becomes("4", "DrainComplete", "True Drained").await;
    assert_eq!(site.pod_names(), ["elsewhere"]);
}

#[tokio::test]
async fn odd_requests_get_one_clear_answer_or_none() {
    let site = Site::start().await;
    site.pods(&["a"]);
    let mut elsewhere = pod("elsewhere");
    elsewhere["spec"]["nodeName"] = json!("worker-2");
    site.apply(elsewhere);
    site.apply(closed_budget());
    let driver = site.usual_driver().await;
    for (id, node) in [
        ("none", json!(null)),
        ("empty", json!("")),
        ("number", json!(7)),
        ("list", json!([NODE])),
    ] {
        site.create(id, json!({"nodeName": node})).await;
        site.becomes(id, "DrainFailed", "True InvalidRequest").await;
        assert!(site.message(id, "DrainFailed").contains("spec.nodeName"));
    }
    // Of another node, whatever its label says.
    site.create("other", json!({"nodeName": "worker-2"})).await;
    let long = "n".repeat(5000);
    site.create("long", json!({"nodeName": long})).await;
    site.settled().await;
    assert!(site.conditions("other").is_empty() && site.conditions("long").is_empty());
    assert!(site.evictions().is_empty());
    // Wrong types beside the node, a name as long as they may be, and ten thousand pods, which are only information.
    site.delete_budget();
    let name = "x".repeat(253 - "drain-worker-1-".len());
    let pods: Vec<_> = (0..10_000).map(|number| format!("pod-{number}")).collect();
    let odd = json!({"errorCode": 48, "entitiesImpacted": "all", "metadata": [1], "reason": {"a": "b\n"}, "later": true,
        "podsToDrain": {"default": pods, "kube-system": "no list"}});
    site.create(&name, odd).await;
    site.becomes(&name, "DrainComplete", "True Drained").await;
    assert_eq!(site.pod_names(), ["elsewhere"]);
    assert!(!driver.log().contains("panicked"));
}

#[tokio::test]
async fn other_names_are_configured() {
    let site = Site::start().await;
    site.pods(&["a"]);
    let conditions = json!({"complete": "Complete", "in-progress": "example.com/Draining"});
    let names = json!({"conditions": conditions});
    let driver = site
        .driver_with(names, json!([]), json!({}), &["--metrics-address", "0"])
        .await;
    site.create("1", json!({})).await;
    site.becomes("1", "Complete", "True Drained").await;
    site.create("2", json!({"nodeName": 7})).await;
    site.becomes("2", "DrainFailed", "True InvalidRequest").await;
    let counts =
        |reason: &str, count: u32| format!("scupper_drain_requests_total{{reason=\"{reason}\"}} {count}\n");
    let expected = [
        counts("Drained", 1),
        counts("InvalidRequest", 1),
        counts("Blocked", 0),
    ];
    site.until("both answers are counted, once", || {
        let text = scrape(&driver, "GET", "/metrics");
        expected.iter().all(|line| text.contains(line))
    })
    .await;
    assert_eq!(site.condition("1", "DrainComplete"), "");
    assert!(
        site.conditions("1")
            .iter()
            .all(|it| it["type"] != "DrainInProgress")
    );
}
