//! DrainRequests beside other triggers, across restarts, and on another node than before: which drain goes first, and
//! what each status says.

use std::time::Duration;

use scupper_simulator::api::{Action, Fault};
use serde_json::{Value, json};

use crate::drain_requests::Site;
use crate::objects::{closed_budget, pod};
use crate::rig::{DRIVER, NODE};

/// A site whose node takes pods, with two that a budget keeps.
async fn schedulable() -> Site {
    let site = Site::start().await;
    site.api
        .store()
        .edit("nodes", "", NODE, |it| it["spec"]["unschedulable"] = json!(false))
        .unwrap();
    site.pods(&["a", "b"]);
    site.apply(closed_budget());
    site
}

/// The checkpoint on the node.
fn mark(site: &Site) -> Value {
    let node = site.node();
    let text = node["metadata"]["annotations"]["scupper.dev/drain"].as_str();
    text.map(|text| serde_json::from_str(text).unwrap())
        .unwrap_or_default()
}

#[tokio::test]
async fn a_named_pod_that_stays_fails_the_request_which_says_why() {
    let site = Site::start().await;
    let mut daemon = pod("agent");
    daemon["metadata"]["ownerReferences"][0]["kind"] = json!("DaemonSet");
    daemon["metadata"]["ownerReferences"][0]["name"] = json!("agent");
    site.apply(json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "default",
        "uid": "6f6d1a52-0000-4000-8000-000000000001"}}));
    site.apply(daemon);
    site.pods(&["a"]);
    let _driver = site.driver(json!({"partial": true}), json!([])).await;
    site.create("1", json!({"podsToDrain": {"default": ["agent", "a"]}}))
        .await;
    site.becomes("1", "DrainFailed", "True Blocked").await;
    let message = site.message("1", "DrainFailed");
    assert!(
        message.contains("default/agent") && message.contains("ignoring DaemonSet-managed Pods"),
        "{message}"
    );
    assert_eq!(site.condition("1", "DrainComplete"), "");
    assert_eq!(site.pod_names(), ["a", "agent"]);
}

#[tokio::test]
async fn what_the_checkpoint_names_goes_on_first_though_its_event_is_read_late() {
    let site = schedulable().await;
    let mut driver = site.driver(json!({}), json!([])).await;
    site.event("drain", DRIVER);
    site.pods_are_asked_to_leave().await;
    site.create("1", json!({})).await;
    site.becomes("1", "DrainInProgress", "False Waiting").await;
    let before = mark(&site);
    assert_eq!(
        (&before["by"], &before["own_cordon"]),
        (&json!("LifecycleEvent"), &json!(true))
    );
    driver.kill();
    let late = Fault::new(Action::Delay(Duration::from_secs(3)));
    let late = late.path("*/lifecycleevents").verb("watch").user_agent("scupper");
    site.api.faults([late]);
    let driver = site.driver(json!({}), json!([])).await;
    site.until("a drain goes on", || {
        driver.output().contains("waits    default/a")
    })
    .await;
    assert_eq!(mark(&site)["id"], before["id"], "{}", driver.output());
    // Nothing asks for either any more: the cordon is lifted.
    site.delete("1").await;
    site.delete_event("drain");
    site.until("our cordon is lifted", || !site.is_cordoned()).await;
}

#[tokio::test]
async fn a_partial_request_that_was_deleted_meanwhile_leaves_its_drain_to_its_successor() {
    let site = schedulable().await;
    let named = json!({"podsToDrain": {"default": ["a"]}});
    let mut driver = site.driver(json!({"partial": true}), json!([])).await;
    site.create("1", named.clone()).await;
    site.pods_are_asked_to_leave().await;
    let before = mark(&site);
    driver.kill();
    site.delete("1").await;
    site.create("2", named).await;
    let _driver = site.driver(json!({"partial": true}), json!([])).await;
    site.becomes("2", "DrainInProgress", "True Draining").await;
    let after = mark(&site);
    assert_eq!(
        (&after["id"], &after["started"]),
        (&before["id"], &before["started"])
    );
    assert!(site.is_cordoned());
    site.delete_budget();
    site.becomes("2", "DrainComplete", "True Drained").await;
    assert_eq!(site.pod_names(), ["b"]);
    assert_eq!(
        site.reason("Drained"),
        None,
        "of the node's other pods it says nothing"
    );
}

#[tokio::test]
async fn an_event_is_claimed_once_the_drain_of_a_request_has_ended() {
    let site = Site::start().await;
    site.pods(&["a"]);
    site.apply(closed_budget());
    let _driver = site.driver(json!({}), json!([])).await;
    site.create("1", json!({})).await;
    site.pods_are_asked_to_leave().await;
    site.event("drain", DRIVER);
    let claim = || site.get_event("drain").unwrap()["status"]["claimStatus"].clone();
    site.until("the event waits, and an Event says what for", || {
        claim() != "Pending" || site.reported("LifecycleEventWaits")
    })
    .await;
    assert_eq!(claim(), "Pending", "its time limit must not run in the queue");
    site.delete_budget();
    site.becomes("1", "DrainComplete", "True Drained").await;
    assert_eq!(site.end_of("drain").await, "Succeeded");
}

#[tokio::test]
async fn one_namespace_that_cannot_be_read_stops_no_other() {
    let site = Site::start().await;
    site.pods(&["a"]);
    let forbidden = Fault::new(Action::Status(403, None));
    site.api
        .faults([forbidden.path("*/namespaces/gpu-ops/drainrequests")]);
    let namespaces = json!({"namespaces": ["nvsentinel", "gpu-ops"]});
    let _driver = site.driver(namespaces, json!([])).await;
    site.create("1", json!({})).await;
    site.becomes("1", "DrainComplete", "True Drained").await;
    assert!(site.pod_names().is_empty());
}

#[tokio::test]
async fn a_request_that_names_another_node_in_mid_drain_does_not_keep_saying_that_this_one_is_drained() {
    let site = Site::start().await;
    site.pods(&["a"]);
    site.apply(closed_budget());
    let _driver = site.driver(json!({}), json!([])).await;
    site.create("1", json!({})).await;
    site.pods_are_asked_to_leave().await;
    site.becomes("1", "DrainInProgress", "True Draining").await;
    let name = format!("drain-{NODE}-1");
    let moved = |it: &mut Value| it["spec"]["nodeName"] = json!("worker-2");
    site.api
        .store()
        .edit("drainrequests.nvsentinel.nvidia.com", "nvsentinel", &name, moved)
        .unwrap();
    site.becomes("1", "DrainInProgress", "False NodeChanged").await;
    site.until("the drain is cancelled", || {
        site.reason("DrainInProgress").as_deref() == Some("DrainCancelled")
    })
    .await;
}
