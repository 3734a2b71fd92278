//! The ends of events; nothing is evicted after them.

use std::time::Duration;

use scupper_simulator::api::{Action, Fault, Forbidden};
use serde_json::json;

use crate::node::Node;
use crate::objects::{closed_budget, pod, slow, unmanaged};
use crate::rig::{DRIVER, START, claim, finalizers};

#[tokio::test]
async fn a_deadline_ends_the_event_by_itself() {
    let node = Node::start().await;
    node.pods(&["a", "b"]);
    node.apply(closed_budget());
    let _driver = node.claimer(&["--sla", "5s"]).await;
    node.event("drain", DRIVER);
    assert_eq!(node.end_of("drain").await, "SlaExpired");
    let before = node.evictions();
    assert!(
        before.values().flatten().all(|answer| *answer == Some(429)),
        "{before:?}"
    );
    assert!(node.is_cordoned(), "a cordon is kept as kubectl drain leaves it");
    assert!(
        node.reasons().iter().any(|reason| reason == START),
        "it has begun"
    );
    // It has also failed, so the condition no longer reports a start.
    node.until("the condition is cleared", || {
        node.reason("LifecycleTransition").as_deref() == Some("")
    })
    .await;
    node.delete_budget();
    // The next event is claimed and ended, so the first one's remaining work is done.
    node.event("back", crate::rig::UNCORDON);
    assert_eq!(node.end_of("back").await, "Succeeded");
    assert_eq!(node.evictions(), before, "evicted after the end of the event");
}

/// `kubectl get` shows its end, and a script can wait for it.
#[tokio::test]
async fn a_finished_event_is_kept_for_the_configured_time() {
    let node = Node::start().await;
    node.pods(&["a"]);
    let _driver = node.claimer(&["--keep-finished", "1h"]).await;
    node.event("drain", DRIVER);
    node.becomes("drain", "Succeeded").await;
    node.until("no finalizer holds it", || {
        node.get_event("drain")
            .is_some_and(|it| finalizers(&it).is_empty())
    })
    .await;
    // The next event comes after the first one's remaining work.
    node.event("back", crate::rig::UNCORDON);
    node.becomes("back", "Succeeded").await;
    assert_eq!(
        node.get_event("drain").map(|it| claim(&it).to_owned()),
        Some("Succeeded".to_owned())
    );
    node.delete_event("drain");
    assert_eq!(node.end_of("drain").await, "Succeeded");
}

#[tokio::test]
async fn an_error_ends_the_event_and_is_reported() {
    // From Start: another transition that names this driver is not its own.
    let node = Node::start().await;
    node.pods(&["a"]);
    let _driver = node.claimer(&[]).await;
    let foreign = json!({"driver": DRIVER, "start": "s", "end": "e", "allNodes": true});
    node.transition("foreign", foreign);
    node.event("drain", "foreign");
    assert_eq!(node.end_of("drain").await, "Failed");
    node.until("the failure is reported", || node.reported("EventFailed"))
        .await;
    assert!(!node.is_cordoned());

    // From End: a pod that may not be evicted.
    node.apply(unmanaged("alone"));
    node.event("blocked", DRIVER);
    assert_eq!(node.end_of("blocked").await, "Failed");
    assert!(node.evictions().is_empty());
    assert!(!node.is_cordoned());
}

#[tokio::test]
async fn a_condition_that_may_not_be_written_fails_the_event() {
    let node = Node::start().await;
    node.pods(&["a", "b"]);
    node.apply(closed_budget());
    let _driver = node.claimer(&["--forbidden-timeout", "2s"]).await;
    node.api.set_forbidden(Forbidden {
        user_agent: "scupper".to_owned(),
        verb: "patch".to_owned(),
        resource: "nodes/status".to_owned(),
        ..Forbidden::default()
    });
    node.event("drain", DRIVER);
    assert_eq!(node.end_of("drain").await, "Failed");
    node.delete_budget();
    assert!(
        node.evictions()
            .values()
            .flatten()
            .all(|answer| *answer != Some(201))
    );
}

#[tokio::test]
async fn an_api_server_that_fails_for_a_while_fails_no_event() {
    let node = Node::start().await;
    node.pods(&["a", "b"]);
    let _driver = node.claimer(&[]).await;
    let fault = |path: &str, code| {
        let mut fault = Fault::new(Action::Status(code, None))
            .path(path)
            .user_agent("scupper");
        fault.count = Some(2);
        fault
    };
    node.api.faults([
        fault("/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/drain", 500),
        fault(
            "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/drain/status",
            409,
        ),
        fault("/api/v1/nodes/worker-1/status", 503),
        fault(
            "/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions/drain.example",
            429,
        ),
    ]);
    node.event("drain", DRIVER);
    assert_eq!(node.end_of("drain").await, "Succeeded");
    assert!(node.pod_names().is_empty());
    node.check_evicted_at_most_once();
}

/// As after its restart, or while its keys rotate.
#[tokio::test]
async fn an_api_server_that_refuses_for_a_while_fails_no_event() {
    for code in [403, 401] {
        let node = Node::start().await;
        node.pods(&["a", "b"]);
        let _driver = node.claimer(&[]).await;
        let events = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/drain";
        let paths = [
            events,
            &format!("{events}/status"),
            "/api/v1/nodes/worker-1/status",
        ];
        let faults = paths.map(|path| {
            let fault = Fault::new(Action::Status(code, None)).path(path);
            fault.user_agent("scupper").count(2)
        });
        node.api.faults(faults);
        node.event("drain", DRIVER);
        assert_eq!(node.end_of("drain").await, "Succeeded", "{code}");
        assert!(node.pod_names().is_empty());
        node.check_evicted_at_most_once();
    }
}

#[tokio::test]
async fn a_deleted_event_is_cancelled_and_rolled_back() {
    let node = Node::start().await;
    node.apply(slow(pod("a"), Duration::from_millis(500)));
    node.pods(&["b", "c"]);
    node.apply(closed_budget());
    let _driver = node.claimer(&[]).await;
    node.event("drain", DRIVER);
    node.until("the node is cordoned", || node.is_cordoned()).await;
    node.delete_event("drain");
    assert_eq!(node.end_of("drain").await, "Failed");
    node.until("the cordon is lifted", || !node.is_cordoned()).await;
    let before = node.evictions();
    node.delete_budget();
    node.event("back", crate::rig::UNCORDON);
    assert_eq!(node.end_of("back").await, "Succeeded");
    assert_eq!(node.evictions(), before, "evicted after the end of the event");

    // Deleted while Pending, it simply disappears.
    node.event("early", "not-there");
    node.delete_event("early");
    assert!(node.get_event("early").is_none());
}

#[tokio::test]
async fn a_foreign_finalizer_keeps_the_ended_event_visible_and_blocks_nothing() {
    for (blocker, status) in [(false, "Succeeded"), (true, "Failed")] {
        let node = Node::start().await;
        node.pods(&["a"]);
        if blocker {
            node.apply(unmanaged("alone"));
        }
        let _driver = node.claimer(&[]).await;
        let mut event = node.event("other", "not-there");
        node.delete_event("other");
        event["metadata"] = json!({"name": "drain", "finalizers": ["example.com/hold"]});
        event["spec"]["transitionName"] = json!(DRIVER);
        node.apply(event);
        node.until("the event is over and deleted", || {
            let event = node.get_event("drain").unwrap();
            event["metadata"]["deletionTimestamp"].is_string() && finalizers(&event) == ["example.com/hold"]
        })
        .await;
        assert_eq!(claim(&node.get_event("drain").unwrap()), status);
        node.event("back", crate::rig::UNCORDON);
        assert_eq!(node.end_of("back").await, "Succeeded");
    }
}

#[tokio::test]
async fn only_this_drivers_leftovers_are_removed() {
    let node = Node::start().await;
    for (name, driver) in [("ours", DRIVER), ("theirs", "other.example")] {
        let mut event = node.event(name, DRIVER);
        event["metadata"]["finalizers"] = json!(["lifecycle.k8s.io/claim-protection"]);
        event["status"] = json!({"claimStatus": "Failed", "driver": driver});
        node.apply(event);
    }
    let _driver = node.claimer(&[]).await;
    assert_eq!(node.end_of("ours").await, "Failed");
    node.event("back", crate::rig::UNCORDON);
    assert_eq!(node.end_of("back").await, "Succeeded");
    assert_eq!(finalizers(&node.get_event("theirs").unwrap()).len(), 1);
}
