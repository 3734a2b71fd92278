//! From a pending event to its end, and the parts of the kubelet and the driver.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::node::{Node, Observed};
use crate::objects::{closed_budget, pod, slow};
use crate::rig::{DRIVER, END, START, UNCORDON, claim, finalizers};

const FINALIZER: &str = "lifecycle.k8s.io/claim-protection";

#[tokio::test]
async fn full_flow_without_a_kubelet_that_knows_slm() {
    let node = Node::start().await;
    node.pods(&["a", "b", "c"]);
    node.apply(slow(pod("d"), Duration::from_secs(2)));
    let _driver = node.claimer(&["--sla", "10m"]).await;
    let begun = Instant::now();
    let mark = node.api.mark();
    node.event("drain", DRIVER);
    node.becomes("drain", "Claimed").await;
    let event = node.get_event("drain").unwrap();
    assert_eq!(event["status"]["driver"], DRIVER);
    let sla: jiff::Timestamp = event["status"]["sla"].as_str().unwrap().parse().unwrap();
    let left = sla.duration_since(jiff::Timestamp::now()).as_secs();
    assert!((500..=600).contains(&left), "{left}");
    assert_eq!(finalizers(&event), [FINALIZER]);

    assert_eq!(node.end_of("drain").await, "Succeeded");
    // Two passes of a kubelet would have taken twenty seconds.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(node.pod_names().is_empty());
    assert!(node.is_cordoned());
    assert_eq!(node.reasons(), [START, END]);
    node.check_evicted_at_most_once();
    let seen = |status: &str, names: &[&str]| {
        let names = names.iter().map(ToString::to_string).collect();
        Observed::Event("drain".to_owned(), status.to_owned(), names)
    };
    let expected = [
        seen("Pending", &[]),
        seen("Pending", &[FINALIZER]),
        seen("Claimed", &[FINALIZER]),
        seen("Succeeded", &[FINALIZER]),
        seen("Succeeded", &[]),
    ];
    let events = node.story().into_iter();
    let events: Vec<_> = events.filter(|it| matches!(it, Observed::Event(..))).collect();
    assert_eq!(events, expected);
    let writes = node.event_writes(mark).len();
    assert_eq!(writes, 5, "finalizer, claim, end, finalizer, deletion");

    // The opposite transition uncordons the node.
    node.event("back", UNCORDON);
    assert_eq!(node.end_of("back").await, "Succeeded");
    assert!(!node.is_cordoned());
    assert_eq!(node.reasons()[2..], ["uncordoning", "maintenance-complete"]);
}

#[tokio::test]
async fn a_stale_reason_neither_ends_a_drain_nor_skips_its_start() {
    for stale in [END, START] {
        let node = Node::start().await;
        node.pods(&["a", "b"]);
        node.set_reason(stale);
        let _driver = node.claimer(&[]).await;
        node.event("drain", DRIVER);
        assert_eq!(node.end_of("drain").await, "Succeeded");
        assert!(node.pod_names().is_empty(), "{stale}: {:?}", node.pod_names());
        assert_eq!(node.reasons(), [stale, "", START, END]);
        assert!(!node.reported("NotDrained"));
    }
}

#[tokio::test]
async fn three_events_at_once_are_taken_one_after_the_other_the_oldest_first() {
    let node = Node::start().await;
    node.pods(&["a", "b"]);
    // Present from the beginning: an event that still waits for its transition blocks no other.
    let transition = json!({"driver": DRIVER, "start": START, "end": END, "allNodes": true});
    node.transition(DRIVER, transition);
    for event in ["one", "two", "three"] {
        node.event(event, DRIVER);
    }
    // The API server stores whole seconds: within one second the name decides.
    let age = |name: &str| {
        let event = node.get_event(name).unwrap();
        format!("{} {name}", event["metadata"]["creationTimestamp"])
    };
    let mut expected = ["one", "two", "three"];
    expected.sort_by_key(|name| age(name));
    let _driver = node.claimer(&[]).await;
    for event in ["one", "two", "three"] {
        assert_eq!(node.end_of(event).await, "Succeeded");
    }
    let mut claimed: Option<String> = None;
    let mut order = Vec::new();
    for seen in node.story() {
        match seen {
            Observed::Event(event, status, _) if status == "Claimed" => {
                assert_eq!(claimed.replace(event.clone()), None, "two at once");
                order.push(event);
            }
            Observed::Event(event, status, _) if status == "Succeeded" && claimed.is_some() => {
                assert_eq!(claimed.take(), Some(event));
            }
            _ => {}
        }
    }
    assert_eq!(order, expected);
    node.check_evicted_at_most_once();
}

#[tokio::test]
async fn only_events_of_our_own_driver_are_claimed() {
    let node = Node::start().await;
    node.pods(&["a"]);
    let other = json!({"driver": "other.example", "start": "s", "end": "e", "allNodes": true});
    node.transition("other", other);
    node.event("foreign", "other");
    node.event("early", "later");
    let _driver = node.claimer(&[]).await;
    node.event("drain", DRIVER);
    // An event that waits for its transition blocks no other.
    assert_eq!(node.end_of("drain").await, "Succeeded");
    for event in ["foreign", "early"] {
        let event = node.get_event(event).unwrap();
        assert_eq!((claim(&event), finalizers(&event).len()), ("Pending", 0));
    }
    // An event claimed by another driver stays that driver's.
    let mut taken = node.get_event("foreign").unwrap();
    taken["status"] = json!({"claimStatus": "Claimed", "driver": "other.example"});
    node.apply(taken.clone());
    node.event("waits", DRIVER);
    let mark = node.api.mark();
    node.delete_event("early");
    node.until("the other driver is through", || {
        node.api
            .store()
            .delete("lifecycleevents.lifecycle.k8s.io", "", "foreign");
        node.get_event("foreign").is_none()
    })
    .await;
    assert_eq!(node.end_of("waits").await, "Succeeded");
    assert!(
        node.event_writes(mark)
            .iter()
            .all(|it| it.path.contains("/waits"))
    );
}

#[tokio::test]
async fn while_the_kubelet_is_silent_the_driver_claims_only_if_configured_to() {
    let node = Node::start().await;
    node.kubelet.stop().await;
    node.pods(&["a"]);
    node.transition(
        DRIVER,
        json!({"driver": DRIVER, "start": START, "end": END, "allNodes": true}),
    );
    node.event("drain", DRIVER);
    let mut driver = node.spawn(&[]);
    node.until("the driver reports that neither claims", || {
        assert!(driver.is_running(), "it ended:\n{}", driver.log());
        driver
            .log()
            .contains("no LifecycleEvent is claimed until it does")
    })
    .await;
    let event = node.get_event("drain").unwrap();
    assert_eq!((claim(&event), finalizers(&event).len()), ("Pending", 0));
    assert!(node.event_writes(0).is_empty());
    driver.kill();
    let _driver = node.claimer(&["--claim", "self"]).await;
    assert_eq!(node.end_of("drain").await, "Succeeded");
    assert!(node.pod_names().is_empty());
}

#[tokio::test]
async fn a_driver_configured_for_kubelet_claims_claims_nothing() {
    let node = Node::start().await;
    node.transition(
        DRIVER,
        json!({"driver": DRIVER, "start": START, "end": END, "allNodes": true}),
    );
    node.event("drain", DRIVER);
    let driver = node.spawn(&["--claim", "kubelet"]);
    node.until("the kubelet has said that it does not know SLM", || {
        driver.log().contains("no LifecycleEvent will be claimed")
    })
    .await;
    // A second call of the kubelet comes after everything the first caused.
    let attempts = node.kubelet.attempts().len();
    node.until("it has said so again", || {
        node.kubelet.attempts().len() > attempts + 1
    })
    .await;
    assert_eq!(claim(&node.get_event("drain").unwrap()), "Pending");
    assert!(node.event_writes(0).is_empty());
}

#[tokio::test]
async fn a_claimed_event_waits_for_its_transition() {
    let node = Node::start().await;
    node.pods(&["a"]);
    node.apply(closed_budget());
    let _driver = node.claimer(&["--sla", "10m"]).await;
    node.event("drain", DRIVER);
    node.until("the drain has begun", || node.is_cordoned()).await;
    node.delete_transition(DRIVER);
    node.delete_budget();
    // The driver restores its transition.
    assert_eq!(node.end_of("drain").await, "Succeeded");
    assert_eq!(node.statuses("drain"), ["Pending", "Claimed", "Succeeded"]);
    assert!(node.pod_names().is_empty());

    // Edited, it counts at once: the condition no longer matches its start, and Start comes again.
    node.pods(&["b"]);
    node.apply(closed_budget());
    node.event("back", UNCORDON);
    node.end_of("back").await;
    node.event("edited", DRIVER);
    node.until("the drain has begun", || node.is_cordoned()).await;
    node.edit_transition(DRIVER, |it| it["spec"]["start"] = json!("begun-otherwise"));
    node.until("the driver starts by the new words", || {
        node.reasons().iter().any(|it| it == "begun-otherwise")
            || node.get_transition(DRIVER).unwrap()["spec"]["start"] == START
    })
    .await;
    node.delete_budget();
    assert_eq!(node.end_of("edited").await, "Succeeded");
    assert!(node.pod_names().is_empty());
    node.check_evicted_at_most_once();
}
