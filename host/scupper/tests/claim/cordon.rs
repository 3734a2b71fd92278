//! The cordon as a trigger: a cordon by another client on a node with the label drains it; an uncordon by any client
//! reverses it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::driver::Driver;
use crate::node::Node;
use crate::objects::{closed_budget, pod, slow};
use crate::rig::{DRIVER, NODE, UNCORDON};

const LABEL: &str = "scupper.dev/drain-on-cordon";

async fn labelled() -> Node {
    let node = Node::start().await;
    label(&node, Some("true"));
    node
}

fn edit(node: &Node, change: impl FnOnce(&mut Value)) {
    node.api.store().edit("nodes", "", NODE, change).unwrap();
}

fn label(node: &Node, value: Option<&str>) {
    edit(node, |it| {
        it["metadata"]["labels"] = value.map_or_else(|| json!({}), |value| json!({LABEL: value}))
    });
}

/// As `kubectl cordon` and `kubectl uncordon` do.
fn cordon(node: &Node, cordoned: bool) {
    edit(node, |it| it["spec"]["unschedulable"] = json!(cordoned));
}

async fn condition(node: &Node, kind: &str, reason: &str) {
    node.until(&format!("{kind} is {reason}"), || {
        node.reason(kind).as_deref() == Some(reason)
    })
    .await;
}

/// Waits until a trigger has done its pending work: an event is carried out after it.
async fn settled(node: &Node) {
    let event = format!("settle-{}", node.story().len());
    node.event(&event, UNCORDON);
    assert_eq!(node.end_of(&event).await, "Succeeded");
}

#[tokio::test]
async fn a_cordon_drains_and_an_uncordon_reverses_it() {
    let node = labelled().await;
    node.pods(&["a", "b"]);
    let driver = node.claimer(&[]).await;
    for _ in 0..2 {
        cordon(&node, true);
        condition(&node, "Drained", "DrainCompleted").await;
        assert!(node.pod_names().is_empty());
        assert!(node.is_cordoned(), "it is not ours to lift");
        cordon(&node, false);
        condition(&node, "Drained", "MaintenanceComplete").await;
        node.pods(&["c"]);
    }
    node.check_evicted_at_most_once();
    assert!(driver.output().contains("cordon-worker-1"), "{}", driver.output());
    assert!(
        !driver.output().contains("the cordon is lifted"),
        "{}",
        driver.output()
    );
}

#[tokio::test]
async fn without_the_label_a_cordon_is_only_a_cordon() {
    let node = Node::start().await;
    node.pods(&["a"]);
    let _driver = node.claimer(&[]).await;
    for value in [None, Some("false"), Some("True"), Some("yes"), Some("")] {
        label(&node, value);
        cordon(&node, true);
        settled(&node).await;
        assert_eq!(node.pod_names(), ["a"]);
        cordon(&node, false);
    }
    assert!(node.evictions().is_empty());
}

#[tokio::test]
async fn our_own_cordon_requests_no_drain() {
    let node = labelled().await;
    node.pods(&["a"]);
    node.apply(closed_budget());
    let mut driver = node.claimer(&["--sla", "5s"]).await;
    node.event("drain", DRIVER);
    assert_eq!(node.end_of("drain").await, "SlaExpired");
    assert!(node.is_cordoned());
    let before = node.evictions();
    // A starting driver also finds its own cordon.
    driver.kill();
    let driver = node.claimer(&["--sla", "5s"]).await;
    node.delete_budget();
    settled(&node).await;
    assert!(!node.is_cordoned());
    assert_eq!(node.evictions(), before);
    assert!(
        !driver.output().contains("cordon-worker-1"),
        "{}",
        driver.output()
    );
}

#[tokio::test]
async fn an_uncordon_in_mid_drain_stops_it() {
    let node = labelled().await;
    node.pods(&["a", "b"]);
    node.apply(closed_budget());
    let _driver = node.claimer(&[]).await;
    cordon(&node, true);
    node.until("pods are asked to leave", || !node.evictions().is_empty())
        .await;
    cordon(&node, false);
    condition(&node, "DrainInProgress", "DrainCancelled").await;
    let before = node.evictions();
    node.delete_budget();
    settled(&node).await;
    assert_eq!(node.evictions(), before, "evicted after the uncordon");
    assert_eq!(node.pod_names(), ["a", "b"]);
}

#[tokio::test]
async fn a_starting_driver_drains_a_cordoned_node_that_is_not_drained() {
    let node = labelled().await;
    node.pods(&["a"]);
    cordon(&node, true);
    let mut driver = node.claimer(&[]).await;
    condition(&node, "Drained", "DrainCompleted").await;
    assert!(node.pod_names().is_empty());
    driver.kill();
    // Already drained: pods on the node now came for reasons of their own.
    node.pods(&["b"]);
    let driver = node.claimer(&[]).await;
    let drained = |driver: &Driver| driver.output().contains("cordon-worker-1");
    settled(&node).await;
    assert!(!drained(&driver), "{}", driver.output());
    assert_eq!(node.pod_names(), ["b"]);
    assert!(node.is_cordoned(), "a foreign cordon is never lifted");
}

/// A person may cancel the drain and keep the cordon: a restart of the driver must not undo that.
#[tokio::test]
async fn a_starting_driver_does_not_try_a_cordon_again() {
    for reason in ["DrainCancelled", "DrainDeadlineExceeded"] {
        let (node, mut driver) = tried(reason).await;
        driver.kill();
        let before = node.evictions();
        let driver = node.claimer(&[]).await;
        node.delete_budget();
        settled(&node).await;
        assert_eq!(node.evictions(), before, "{reason}: {}", driver.output());
        assert_eq!(node.pod_names(), ["a"]);
    }
}

#[tokio::test]
async fn an_uncordon_ends_what_was_tried_also_for_a_driver_that_starts_later() {
    let (node, mut driver) = tried("DrainCancelled").await;
    cordon(&node, false);
    let is_over = |node: &Node| {
        let conditions = node.node()["status"]["conditions"].clone();
        let says_so = |it: &Value| {
            let message = it["message"].as_str().unwrap_or_default();
            message.contains("cancelled: ") && message.ends_with("; the node was uncordoned since")
        };
        conditions.as_array().is_some_and(|all| all.iter().any(says_so))
    };
    node.until("the condition names the end and the uncordon", || is_over(&node))
        .await;
    // What happened stays to be read.
    assert_eq!(node.reason("DrainInProgress").as_deref(), Some("DrainCancelled"));
    driver.kill();
    node.delete_budget();
    cordon(&node, true);
    let _driver = node.claimer(&[]).await;
    condition(&node, "Drained", "DrainCompleted").await;
    assert!(node.pod_names().is_empty());
}

/// Here the notice leaves no time for the drain.
#[tokio::test]
async fn a_cordon_whose_drain_was_refused_before_any_change_is_tried_again() {
    let node = labelled().await;
    node.pods(&["a"]);
    let mut driver = node.claimer(&["--sla", "5m", "--notify-before", "10m"]).await;
    cordon(&node, true);
    condition(&node, "DrainInProgress", "DrainRefused").await;
    driver.kill();
    assert_eq!(node.pod_names(), ["a"]);
    let _driver = node.claimer(&[]).await;
    condition(&node, "Drained", "DrainCompleted").await;
    assert!(node.pod_names().is_empty());
}

/// The drain of a cordoned node has ended for this reason, and the cordon is still there.
async fn tried(reason: &str) -> (Node, Driver) {
    let node = labelled().await;
    node.pods(&["a"]);
    node.apply(closed_budget());
    let is_cancelled = reason == "DrainCancelled";
    let limit: &[&str] = if is_cancelled { &[] } else { &["--sla", "5s"] };
    let driver = node.claimer(limit).await;
    cordon(&node, true);
    if is_cancelled {
        node.until("pods are asked to leave", || !node.evictions().is_empty())
            .await;
        cancel(&node);
    }
    condition(&node, "DrainInProgress", reason).await;
    assert!(node.is_cordoned(), "it is not ours to lift");
    (node, driver)
}

/// As `scupper cancel` does.
fn cancel(node: &Node) {
    let mark = node.node()["metadata"]["annotations"]["scupper.dev/drain"].clone();
    let mark: Value = serde_json::from_str(mark.as_str().unwrap()).unwrap();
    let id = mark["id"].as_str().unwrap();
    edit(node, |it| {
        it["metadata"]["annotations"]["scupper.dev/cancel"] = json!(id)
    });
}

#[tokio::test]
async fn a_driver_killed_in_mid_drain_continues_the_drain() {
    let node = labelled().await;
    node.apply(slow(pod("a"), Duration::from_secs(2)));
    node.pods(&["b"]);
    node.apply(closed_budget());
    let mut driver = node.claimer(&[]).await;
    cordon(&node, true);
    node.until("pods are asked to leave", || !node.evictions().is_empty())
        .await;
    driver.kill();
    let driver = node.claimer(&[]).await;
    node.delete_budget();
    condition(&node, "Drained", "DrainCompleted").await;
    assert!(node.pod_names().is_empty());
    assert!(node.is_cordoned());
    node.check_evicted_at_most_once();
    assert!(!driver.output().contains("Lost"), "{}", driver.output());
}

#[tokio::test]
async fn a_drain_is_not_continued_if_the_node_was_uncordoned_while_the_driver_was_down() {
    let node = labelled().await;
    node.pods(&["a"]);
    node.apply(closed_budget());
    let mut driver = node.claimer(&[]).await;
    cordon(&node, true);
    node.until("pods are asked to leave", || !node.evictions().is_empty())
        .await;
    driver.kill();
    cordon(&node, false);
    node.delete_budget();
    let _driver = node.claimer(&[]).await;
    condition(&node, "DrainInProgress", "DrainLost").await;
    settled(&node).await;
    assert_eq!(node.pod_names(), ["a"]);
}

#[tokio::test]
async fn both_triggers_at_once_run_one_drain_at_a_time() {
    let node = labelled().await;
    node.apply(slow(pod("a"), Duration::from_secs(1)));
    node.pods(&["b", "c"]);
    let _driver = node.claimer(&[]).await;
    cordon(&node, true);
    node.event("drain", DRIVER);
    assert_eq!(node.end_of("drain").await, "Succeeded");
    condition(&node, "Drained", "DrainCompleted").await;
    assert!(node.pod_names().is_empty());
    node.check_evicted_at_most_once();
    // The event's uncordon does not lift a foreign cordon, and that cordon requests no second drain.
    node.pods(&["d"]);
    settled(&node).await;
    assert!(node.is_cordoned());
    settled(&node).await;
    assert_eq!(node.pod_names(), ["d"]);
}
