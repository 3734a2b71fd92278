//! Scenarios 11 to 13 and 16: which calls come, and what is answered.

use std::time::Duration;

use scupper_simulator::kubelet::{Kind, Step};

use crate::objects::{pod, slow};
use crate::rig::{DRIVER, END, Rig, START, UNCORDON};

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
    let drives = rig
        .kubelet
        .passes()
        .into_iter()
        .filter(|it| it.step == Step::Drive)
        .count();
    assert!(drives >= 3, "Start, End, Succeeded");
    assert!(
        driver.output().contains('a'),
        "a drain is told: {}",
        driver.output()
    );

    // The opposite transition gives the node back, and readies the condition for the next drain.
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
        rig.told("NotDrained")
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
    // Another reason leads the kubelet back to Start, in the middle of the work.
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

#[tokio::test]
async fn scenario_16_the_newer_endpoint_is_used_and_the_older_one_again() {
    let rig = Rig::start().await;
    let _older = rig.driver(&[]).await;
    let old = rig.endpoints();
    let mut newer = rig.driver(&[]).await;
    let both = rig.endpoints();
    assert_eq!(both.len(), 2, "a live sibling is left alone");
    rig.pods(&["a"]);
    rig.event("first", DRIVER);
    assert_eq!(rig.end_of("first").await, "Succeeded");
    assert!(
        rig.kubelet
            .calls()
            .iter()
            .all(|call| call.endpoint.as_ref() == both.last())
    );
    rig.event("back", UNCORDON);
    assert_eq!(rig.end_of("back").await, "Succeeded");
    let calls = rig.kubelet.calls().len();

    newer.terminate();
    newer.ended(crate::rig::LIMIT).await;
    rig.until("the newer one is deregistered", || rig.endpoints() == old)
        .await;
    rig.pods(&["b"]);
    rig.event("second", DRIVER);
    assert_eq!(rig.end_of("second").await, "Succeeded");
    assert!(
        rig.kubelet.calls()[calls..]
            .iter()
            .all(|call| call.endpoint.as_ref() == old.last())
    );
    assert!(rig.pod_names().is_empty());
    rig.check_evicted_at_most_once();
}
