//! LifecycleEvents that are not as they should be.

use serde_json::{Value, json};

use crate::node::Node;
use crate::objects::pod;
use crate::rig::{DRIVER, NODE, claim, finalizers};

fn event(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent", "metadata": {"name": name},
        "spec": {"transitionName": DRIVER, "bindingNode": node}, "status": {"claimStatus": "Pending"},
    })
}

#[tokio::test]
async fn odd_events_get_one_clear_answer_or_none_and_the_next_one_is_carried_out() {
    let node = Node::start().await;
    node.pods(&["a"]);
    let mut elsewhere = pod("elsewhere");
    elsewhere["spec"]["nodeName"] = json!("worker-2");
    node.apply(elsewhere);
    let driver = node.claimer(&[]).await;
    // Another node's, and ended ones of a driver whose name is no text: not ours.
    node.apply(event("other", "worker-2"));
    for (name, claimant) in [
        ("number", json!(7)),
        ("list", json!([DRIVER])),
        ("object", json!({"name": {}})),
    ] {
        let mut odd = event(name, NODE);
        odd["status"] = json!({"claimStatus": "Failed", "driver": claimant, "sla": "tomorrow"});
        node.apply(odd);
    }
    // Flags of wrong types, as a template may write them.
    for (name, flags) in [
        ("no-flags", ""),
        ("list-of-flags", "[]"),
        ("words", r#"{"force": "yes"}"#),
        ("long-flags", &"x".repeat(100_000)),
    ] {
        let mut odd = event(name, NODE);
        odd["metadata"]["annotations"] = json!({"scupper.dev/drain-flags": flags});
        node.apply(odd);
        assert_eq!(node.end_of(name).await, "Failed");
    }
    assert!(node.evictions().is_empty());
    assert!(!node.is_cordoned());
    // A name as long as it may be.
    let long = "x".repeat(253);
    node.event(&long, DRIVER);
    assert_eq!(node.end_of(&long).await, "Succeeded");
    assert_eq!(node.pod_names(), ["elsewhere"]);
    for (name, status) in [
        ("other", "Pending"),
        ("number", "Failed"),
        ("list", "Failed"),
        ("object", "Failed"),
    ] {
        let event = node.get_event(name).unwrap();
        assert_eq!((claim(&event), finalizers(&event).len()), (status, 0), "{name}");
    }
    assert!(!driver.log().contains("watch broke"), "{}", driver.log());
}
