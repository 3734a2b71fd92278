//! Scenarios 11 to 13 and 16: the kubelet's calls, and the answers.

use std::path::PathBuf;
use std::time::Duration;

use scupper_simulator::kubelet::{Kind, Step};

use crate::driver::Driver;
use crate::objects::{pod, slow};
use crate::rig::{DRIVER, END, LIMIT, Rig, START, UNCORDON};

#[tokio::test]
async fn scenario_11_full_flow() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b", "c", "d"]);
    let driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert_eq!(rig.kubelet.record().reasons(), [START, END]);
    assert!(rig.pod_names().is_empty());
    assert!(rig.is_cordoned());
    rig.check_evicted_at_most_once();
    assert_eq!(rig.evictions().len(), 4);
    // The last one is recorded once it has ended.
    rig.passes(1).await;
    let drives = rig
        .kubelet
        .passes()
        .into_iter()
        .filter(|it| it.step == Step::Drive)
        .count();
    assert!(drives >= 3, "Start, End, Succeeded");
    assert!(
        driver.output().contains('a'),
        "a drain is reported: {}",
        driver.output()
    );

    // The opposite transition uncordons the node, and prepares the condition for the next drain.
    rig.event("back", UNCORDON);
    assert_eq!(rig.end_of("back").await, "Succeeded");
    assert!(!rig.is_cordoned());
    assert_eq!(
        rig.kubelet.record().reasons()[2..],
        ["uncordoning", "maintenance-complete"]
    );
    rig.pods(&["e"]);
    rig.event("again", DRIVER);
    assert_eq!(rig.end_of("again").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
}

#[tokio::test]
async fn scenario_12_stale_end_is_noticed() {
    let rig = Rig::start().await;
    rig.pods(&["a"]);
    rig.set_reason(END);
    let _driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.calls().is_empty());
    rig.until("a warning says that the node was not drained", || {
        rig.reported("NotDrained")
    })
    .await;
    assert_eq!(rig.pod_names(), ["a"]);
    assert_ne!(rig.reason("Drained").as_deref(), Some(END));
}

#[tokio::test]
async fn scenario_12_stale_start_begins_with_end() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b"]);
    rig.set_reason(START);
    let _driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(
        rig.calls().iter().all(|kind| *kind == Kind::End),
        "{:?}",
        rig.calls()
    );
    assert!(rig.pod_names().is_empty());
    rig.check_evicted_at_most_once();
}

#[tokio::test]
async fn scenario_12_other_reason_begins_with_start() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b"]);
    rig.set_reason("SomethingElse");
    let _driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert_eq!(rig.calls()[0], Kind::Start);
    assert!(rig.pod_names().is_empty());
}

#[tokio::test]
async fn scenario_13_answers_while_working_are_empty_and_start_may_come_again() {
    let rig = Rig::start().await;
    rig.apply(slow(pod("a"), Duration::from_secs(3)));
    rig.pods(&["b"]);
    let _driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    rig.called(Kind::End, 2).await;
    // Another reason leads the kubelet to call Start again, in the middle of the work.
    rig.set_reason("SomethingElse");
    rig.called(Kind::Start, 2).await;
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    let calls = rig.kubelet.calls();
    let (last, before) = calls.split_last().unwrap();
    for call in before {
        let answer = call.answer.as_ref().unwrap();
        assert_eq!(answer.error, "");
        match call.kind {
            Kind::Start => assert_eq!(answer.condition, START),
            Kind::End => assert_eq!(answer.condition, "", "still working"),
        }
        assert_eq!(answer.node, crate::rig::NODE, "always the own node");
    }
    assert_eq!(last.answer.as_ref().unwrap().condition, END);
    assert_eq!(
        rig.kubelet.record().reasons(),
        [START, START, END],
        "no write while it works"
    );
    assert!(rig.pod_names().is_empty());
    rig.check_evicted_at_most_once();
}

/// Two instances; neither starts the event while both live, but only the newer one is called.
async fn two_instances(rig: &Rig) -> (Driver, Driver, [PathBuf; 2]) {
    let older = rig.driver(&[]).await;
    let newer = rig.driver(&[]).await;
    let endpoints = rig.endpoints().try_into().unwrap();
    rig.pods(&["a", "b"]);
    rig.event("drain", DRIVER);
    rig.kubelet
        .wait_for(|record| record.calls().len() >= 3, LIMIT)
        .await
        .unwrap();
    assert!(rig.evictions().is_empty(), "two do not work at one drain");
    (older, newer, endpoints)
}

/// Stops an instance as a rolling update does; the other one completes the drain.
async fn drained_without(rig: &Rig, mut stopped: Driver, left: &PathBuf) {
    stopped.terminate();
    assert!(stopped.ended(LIMIT).await.success());
    rig.until("it is deregistered", || {
        rig.endpoints() == std::slice::from_ref(left)
    })
    .await;
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
    rig.check_evicted_at_most_once();
    assert_eq!(rig.kubelet.calls().pop().unwrap().endpoint.as_ref(), Some(left));
}

#[tokio::test]
async fn scenario_16_the_newer_endpoint_is_used() {
    let rig = Rig::start().await;
    let (older, _newer, [_, new]) = two_instances(&rig).await;
    drained_without(&rig, older, &new).await;
    assert!(
        rig.kubelet
            .calls()
            .iter()
            .all(|call| call.endpoint.as_ref() == Some(&new))
    );
}

#[tokio::test]
async fn scenario_16_the_older_endpoint_is_used_again_once_the_newer_is_removed() {
    let rig = Rig::start().await;
    let (_older, newer, [old, new]) = two_instances(&rig).await;
    assert!(
        rig.kubelet
            .calls()
            .iter()
            .all(|call| call.endpoint.as_ref() == Some(&new))
    );
    drained_without(&rig, newer, &old).await;
}
