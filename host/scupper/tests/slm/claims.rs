//! Scenarios 1 to 5: from a pending event to a claimed one, and a kubelet that restarts.

use scupper_simulator::kubelet::{Entry, Kind, Outcome, Step};
use serde_json::json;

use crate::objects::slow;
use crate::rig::{DRIVER, END, Rig, START, claim, finalizers};

fn transition() -> serde_json::Value {
    json!({"driver": DRIVER, "start": START, "end": END, "allNodes": true})
}

#[tokio::test]
async fn scenario_01_event_without_driver_stays_pending() {
    let rig = Rig::start().await;
    rig.transition(DRIVER, transition());
    rig.event("drain", DRIVER);
    rig.passes(5).await;
    let event = rig.get_event("drain").unwrap();
    assert_eq!(claim(&event), "Pending");
    assert!(finalizers(&event).is_empty());
}

#[tokio::test]
async fn scenario_02_driver_registers_later() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b"]);
    rig.transition(DRIVER, transition());
    rig.event("drain", DRIVER);
    rig.passes(3).await;
    let _driver = rig.driver(&[]).await;
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    let passes = rig.kubelet.passes();
    let claimed = passes
        .iter()
        .position(|it| it.step == Step::Claim && it.outcome == Outcome::Done);
    let waited = &passes[..claimed.unwrap()];
    let unregistered = Outcome::Unchanged(format!("SLM driver {DRIVER} is not registered"));
    assert!(
        waited
            .iter()
            .filter(|it| it.step == Step::Claim)
            .all(|it| it.outcome == unregistered)
    );
    assert!(rig.pod_names().is_empty());
}

#[tokio::test]
async fn scenario_03_registered_endpoint_that_does_not_accept_fails_the_event() {
    let rig = Rig::start().await;
    rig.pods(&["a"]);
    let mut driver = rig.driver(&[]).await;
    driver.kill();
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Failed");
    assert!(rig.calls().is_empty());
    assert!(rig.evictions().is_empty());
    // The next instance removes the dead socket, and the next event is a drain again.
    let _driver = rig.driver(&[]).await;
    rig.until("only the living endpoint is registered", || {
        rig.endpoints().len() == 1
    })
    .await;
    rig.event("again", DRIVER);
    assert_eq!(rig.end_of("again").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
}

#[tokio::test]
async fn scenario_04_three_events_at_once_are_never_two_claimed() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b", "c"]);
    let _driver = rig.driver(&[]).await;
    for event in ["one", "two", "three"] {
        rig.event(event, DRIVER);
    }
    for event in ["one", "two", "three"] {
        assert_eq!(rig.end_of(event).await, "Succeeded");
    }
    let mut claimed: Option<String> = None;
    for entry in rig.kubelet.record().entries() {
        match entry {
            Entry::Claimed { event, .. } => assert_eq!(claimed.replace(event), None, "two at once"),
            Entry::Finished { event, .. } => assert_eq!(claimed.take(), Some(event)),
            _ => {}
        }
    }
    assert!(rig.pod_names().is_empty());
    rig.check_evicted_at_most_once();
}

#[tokio::test]
async fn scenario_05_kubelet_restart_while_claimed_resumes_by_the_reason() {
    let rig = Rig::start().await;
    rig.apply(slow(crate::objects::pod("a"), std::time::Duration::from_secs(3)));
    rig.pods(&["b", "c"]);
    let _driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    rig.called(Kind::End, 1).await;
    rig.kubelet.restart().await.unwrap();
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert_eq!(rig.calls().iter().filter(|it| **it == Kind::Start).count(), 1);
    let claims = rig
        .kubelet
        .record()
        .pick(|entry| matches!(entry, Entry::Claimed { .. }).then_some(()));
    assert_eq!(claims.len(), 1);
    assert!(rig.pod_names().is_empty());
    rig.check_evicted_at_most_once();
}
