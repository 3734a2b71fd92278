//! Scenarios 9, 10 and 17: transitions that are removed, kept, or changed by another client.

use std::time::Duration;

use scupper_simulator::api::Forbidden;
use scupper_simulator::kubelet::{Entry, Kind};
use serde_json::json;

use crate::objects::{pod, slow};
use crate::rig::{DRIVER, NODE, Rig};

fn own() -> String {
    format!("{DRIVER}.{NODE}")
}

/// As after a crash without cleanup, when the sockets were then removed.
fn remove_sockets(rig: &Rig) {
    for socket in std::fs::read_dir(rig.kubelet.root().join("plugins_registry")).unwrap() {
        std::fs::remove_file(socket.unwrap().path()).unwrap();
    }
}

#[tokio::test]
async fn scenario_09_driver_gone_for_long_loses_its_node_scoped_transitions() {
    let rig = Rig::start().await;
    let mut driver = rig.driver(&["--scope", "node"]).await;
    assert!(rig.get_transition(&own()).is_some());
    rig.transition(
        "shared",
        json!({"driver": DRIVER, "start": "s", "end": "e", "allNodes": true}),
    );
    driver.kill();
    remove_sockets(&rig);
    rig.until("the own transitions are gone", || {
        rig.get_transition(&own()).is_none()
    })
    .await;
    assert!(rig.get_transition("shared").is_some());
}

#[tokio::test]
async fn scenario_10_driver_back_in_time_keeps_its_transitions() {
    let rig = Rig::start().await;
    let mut driver = rig.driver(&["--scope", "node"]).await;
    let uid = rig.get_transition(&own()).unwrap()["metadata"]["uid"].clone();
    driver.kill();
    let _driver = rig.driver(&["--scope", "node"]).await;
    rig.until("the dead endpoint is gone", || rig.endpoints().len() == 1)
        .await;
    // Longer than the delay of the removal.
    let cleaned = |entry: &Entry| {
        matches!(entry, Entry::CleanedUp { selector, .. } if selector.contains("spec.driver")).then_some(())
    };
    tokio::time::sleep(crate::rig::timing().cleanup_delay + Duration::from_secs(1)).await;
    assert!(rig.kubelet.record().pick(cleaned).is_empty());
    assert_eq!(rig.get_transition(&own()).unwrap()["metadata"]["uid"], uid);
}

#[tokio::test]
async fn scenario_10_node_scoped_transitions_are_published_again_after_a_kubelet_restart() {
    let rig = Rig::start().await;
    rig.pods(&["a"]);
    let _driver = rig.driver(&["--scope", "node"]).await;
    let uid = rig.get_transition(&own()).unwrap()["metadata"]["uid"].clone();
    rig.kubelet.restart().await.unwrap();
    rig.until("the transition was made again", || {
        rig.get_transition(&own())
            .is_some_and(|transition| transition["metadata"]["uid"] != uid)
    })
    .await;
    rig.event("drain", &own());
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
}

#[tokio::test]
async fn scenario_17_transition_deleted_mid_way_is_published_again() {
    let rig = Rig::start().await;
    rig.apply(slow(pod("a"), Duration::from_secs(2)));
    let _driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    rig.called(Kind::End, 1).await;
    rig.delete_transition(DRIVER);
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.get_transition(DRIVER).is_some());
    assert!(rig.pod_names().is_empty());
}

#[tokio::test]
async fn scenario_17_transition_edited_mid_way_still_ends_right() {
    let rig = Rig::start().await;
    rig.apply(slow(pod("a"), Duration::from_secs(2)));
    rig.pods(&["b"]);
    let _driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    rig.called(Kind::End, 1).await;
    rig.edit_transition(DRIVER, |transition| transition["spec"]["end"] = json!("all-gone"));
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(
        rig.pod_names().is_empty(),
        "Succeeded only once the pods are gone"
    );
    rig.check_evicted_at_most_once();
}

/// An admission policy that restricts shared transitions to the operator's reasons refuses those of another
/// configuration.
#[tokio::test]
async fn a_transition_that_the_server_refuses_is_reported() {
    let rig = Rig::start().await;
    rig.api.set_forbidden(Forbidden {
        verb: "create".to_owned(),
        resource: "lifecycletransitions.lifecycle.k8s.io".to_owned(),
        ..Forbidden::default()
    });
    let driver = rig.spawn(&[]);
    rig.until("an Event says so", || rig.reported("TransitionNotPublished"))
        .await;
    let reported = rig.list("events.events.k8s.io");
    let reported = reported
        .iter()
        .find(|it| it["reason"] == "TransitionNotPublished")
        .unwrap();
    let note = reported["note"].as_str().unwrap();
    assert!(
        note.contains("publish lifecycletransition"),
        "{note}\n{}",
        driver.log()
    );
}
