//! Scenarios 6 to 8, 14, 15 and 22: the ends of events; nothing is evicted after them.

use std::time::Duration;

use scupper_simulator::kubelet::{Entry, Kind};
use serde_json::json;

use crate::objects::{closed_budget, pod, slow, unmanaged};
use crate::rig::{DRIVER, END, Rig, START, claim, finalizers};

/// No request follows the ones so far, although nothing blocks it.
async fn nothing_more_is_evicted(rig: &Rig) {
    let before = rig.evictions();
    rig.pods(&["late-1", "late-2"]);
    rig.passes(8).await;
    assert_eq!(rig.evictions(), before, "evicted after the end of the event");
}

#[tokio::test]
async fn scenario_06_deadline_expires_and_no_call_follows() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b"]);
    rig.apply(closed_budget());
    let _driver = rig.driver(&["--sla", "5s"]).await;
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "SlaExpired");
    let calls = rig.calls().len();
    rig.delete_budget();
    nothing_more_is_evicted(&rig).await;
    assert_eq!(rig.calls().len(), calls);
    assert!(
        rig.evictions()
            .values()
            .flatten()
            .all(|answer| *answer == Some(429)),
        "{:?}",
        rig.evictions()
    );
    assert_eq!(
        rig.reason("LifecycleTransition").as_deref(),
        Some(START),
        "the condition stays"
    );
    assert!(rig.is_cordoned(), "a cordon is kept as kubectl drain leaves it");
}

#[tokio::test]
async fn scenario_07_error_from_start_and_from_end_fails_the_event() {
    // From Start: another transition that names this driver is not its own.
    let rig = Rig::start().await;
    rig.pods(&["a"]);
    let _driver = rig.driver(&[]).await;
    rig.transition(
        "foreign",
        json!({"driver": DRIVER, "start": "s", "end": "e", "allNodes": true}),
    );
    rig.event("drain", "foreign");
    assert_eq!(rig.end_of("drain").await, "Failed");
    let refused = rig.kubelet.calls().remove(0).answer.unwrap();
    assert!(
        refused.error.contains(DRIVER),
        "it names its own: {}",
        refused.error
    );
    assert!(!rig.is_cordoned());
    nothing_more_is_evicted(&rig).await;

    // From End (or Start, if it is known by then): a pod that may not be evicted, reported before any change.
    let rig = Rig::start().await;
    rig.pods(&["a"]);
    rig.apply(unmanaged("alone-1"));
    rig.apply(unmanaged("alone-2"));
    let _driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Failed");
    let error = rig.kubelet.calls().pop().unwrap().answer.unwrap().error;
    assert!(
        error.contains("alone-1") && error.contains("alone-2"),
        "all that stand in the way: {error}"
    );
    assert!(rig.evictions().is_empty());
    assert!(!rig.is_cordoned());
}

#[tokio::test]
async fn scenario_08_foreign_finalizer_keeps_the_ended_event_visible() {
    for (blocker, status) in [(false, "Succeeded"), (true, "Failed")] {
        let rig = Rig::start().await;
        rig.pods(&["a"]);
        if blocker {
            rig.apply(unmanaged("alone"));
        }
        let _driver = rig.driver(&[]).await;
        let mut event = rig.event("other", "not-there");
        rig.delete_event("other");
        event["metadata"] = json!({"name": "drain", "finalizers": ["example.com/hold"]});
        event["spec"]["transitionName"] = json!(DRIVER);
        rig.apply(event);
        assert_eq!(rig.status_of("drain").await, status);
        rig.passes(2).await;
        let event = rig.get_event("drain").unwrap();
        assert_eq!(claim(&event), status);
        assert!(event["metadata"]["deletionTimestamp"].is_string());
        assert_eq!(finalizers(&event), ["example.com/hold"]);
    }
}

#[tokio::test]
async fn scenario_14_refused_node_patch_fails_the_event() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b"]);
    rig.apply(closed_budget());
    let driver = rig.driver(&[]).await;
    rig.kubelet.faults().refuse_patch(Some(403));
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Failed");
    // The driver learns of it by its own watch, perhaps before it has the node's lease and has begun.
    rig.until("the driver learns that the drain is over", || {
        driver.log().contains("command=Lost")
    })
    .await;
    rig.passes(5).await;
    rig.delete_budget();
    nothing_more_is_evicted(&rig).await;
    assert_eq!(rig.pod_names().len(), 4);
}

#[tokio::test]
async fn scenario_15_call_that_takes_too_long_fails_the_event_and_nothing_follows() {
    let rig = Rig::with(|options| options.timing.call = Duration::from_secs(2)).await;
    rig.pods(&["a", "b"]);
    rig.apply(closed_budget());
    let driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    rig.called(Kind::End, 1).await;
    driver.freeze();
    assert_eq!(rig.end_of("drain").await, "Failed");
    driver.thaw();
    rig.passes(5).await;
    rig.delete_budget();
    nothing_more_is_evicted(&rig).await;
    assert!(
        rig.evictions()
            .values()
            .flatten()
            .all(|answer| *answer != Some(201))
    );
}

#[tokio::test]
async fn scenario_22_deleted_event_is_cancelled_and_rolled_back() {
    let rig = Rig::start().await;
    rig.apply(slow(pod("a"), Duration::from_millis(500)));
    rig.pods(&["b", "c"]);
    rig.apply(closed_budget());
    let _driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    rig.until("the node is cordoned", || rig.is_cordoned()).await;
    rig.called(Kind::End, 1).await;
    rig.delete_event("drain");
    assert_eq!(rig.end_of("drain").await, "Failed");
    rig.until("the cordon is lifted", || !rig.is_cordoned()).await;
    rig.delete_budget();
    nothing_more_is_evicted(&rig).await;

    // Deleted while Pending, it simply disappears.
    let rig = Rig::start().await;
    rig.transition(
        DRIVER,
        json!({"driver": DRIVER, "start": START, "end": END, "allNodes": true}),
    );
    rig.event("drain", DRIVER);
    rig.passes(2).await;
    rig.delete_event("drain");
    assert!(rig.get_event("drain").is_none());
    let finished = rig
        .kubelet
        .record()
        .pick(|entry| matches!(entry, Entry::Finished { .. }).then_some(()));
    assert!(finished.is_empty());
}
