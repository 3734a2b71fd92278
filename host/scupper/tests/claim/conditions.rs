//! The pair of conditions at every step of a drain that the driver claims itself, by an event or by a cordon.

use serde_json::json;

use crate::node::Node;
use crate::objects::closed_budget;
use crate::pairs::Pairs;
use crate::rig::{DRIVER, NODE, UNCORDON};

fn watch(node: &Node) -> Pairs {
    Pairs::watch(kube::Client::try_from(node.api.client_config()).unwrap(), NODE)
}

async fn becomes(node: &Node, pairs: &Pairs, last: &str) {
    node.until(last, || pairs.last() == last).await;
}

fn cordon(node: &Node, cordoned: bool) {
    let change = |it: &mut serde_json::Value| it["spec"]["unschedulable"] = json!(cordoned);
    node.api.store().edit("nodes", "", NODE, change).unwrap();
}

#[tokio::test]
async fn conditions_of_events_that_succeed_are_late_or_are_deleted() {
    let node = Node::start().await;
    let pairs = watch(&node);
    node.pods(&["a"]);
    let _driver = node.claimer(&["--sla", "4s"]).await;
    node.event("drain", DRIVER);
    assert_eq!(node.end_of("drain").await, "Succeeded");
    becomes(&node, &pairs, "False/True DrainCompleted").await;
    node.event("back", UNCORDON);
    assert_eq!(node.end_of("back").await, "Succeeded");
    becomes(&node, &pairs, "False/False MaintenanceComplete").await;
    node.pods(&["b"]);
    node.apply(closed_budget());
    node.event("deleted", DRIVER);
    becomes(&node, &pairs, "True/False DrainStarted").await;
    node.delete_event("deleted");
    assert_eq!(node.end_of("deleted").await, "Failed");
    becomes(&node, &pairs, "False/False DrainCancelled").await;
    node.event("late", DRIVER);
    assert_eq!(node.end_of("late").await, "SlaExpired");
    becomes(&node, &pairs, "False/False DrainDeadlineExceeded").await;
    node.delete_budget();
    node.event("drain-again", DRIVER);
    assert_eq!(node.end_of("drain-again").await, "Succeeded");
    becomes(&node, &pairs, "False/True DrainCompleted").await;
    cordon(&node, false);
    becomes(&node, &pairs, "False/False Uncordoned").await;
    let expected = [
        "True/False DrainStarted",
        "False/True DrainCompleted",
        "False/False MaintenanceComplete",
        "True/False DrainStarted",
        "False/False DrainCancelled",
        "True/False DrainStarted",
        "False/False DrainDeadlineExceeded",
        "True/False DrainStarted",
        "False/True DrainCompleted",
        "False/False Uncordoned",
    ];
    assert_eq!(pairs.story(), expected);
}

#[tokio::test]
async fn of_a_cordon_that_is_lifted_before_and_after_the_node_is_drained() {
    let node = Node::start().await;
    let label = |it: &mut serde_json::Value| {
        it["metadata"]["labels"] = json!({"scupper.dev/drain-on-cordon": "true"});
    };
    node.api.store().edit("nodes", "", NODE, label).unwrap();
    let pairs = watch(&node);
    node.pods(&["a"]);
    node.apply(closed_budget());
    let mut driver = node.claimer(&[]).await;
    cordon(&node, true);
    becomes(&node, &pairs, "True/False DrainStarted").await;
    cordon(&node, false);
    becomes(&node, &pairs, "False/False DrainCancelled").await;
    cordon(&node, true);
    becomes(&node, &pairs, "True/False DrainStarted").await;
    // A driver that continues after kill -9 reports the same, and never that the node is drained.
    driver.kill();
    let _driver = node.claimer(&[]).await;
    node.delete_budget();
    becomes(&node, &pairs, "False/True DrainCompleted").await;
    cordon(&node, false);
    becomes(&node, &pairs, "False/False MaintenanceComplete").await;
    let expected = [
        "True/False DrainStarted",
        "False/False DrainCancelled",
        "True/False DrainStarted",
        "False/True DrainCompleted",
    ];
    assert_eq!(pairs.story()[..4], expected);
}
