//! Transitions that are removed, kept or changed.

use std::time::Duration;

use scupper_simulator::kubelet::Entry;
use serde_json::json;

use crate::cluster::status;
use crate::driver::{Plugin, Registered, Reply};
use crate::events::{DRAIN, DRIVER, END, START, driver, ended, passes, world, world_with};
use crate::world::LIMIT;

#[tokio::test]
async fn a_transition_that_went_or_changed_counts_at_the_next_pass() {
    let (cluster, world) = world().await;
    let (service, _front) = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= 2, LIMIT)
        .await
        .unwrap();
    cluster.delete_transition(DRAIN).await;
    passes(&world, 1).await;
    let calls = world.kubelet.calls().len();
    passes(&world, 3).await;
    assert_eq!(
        world.kubelet.calls().len(),
        calls,
        "no calls without the transition"
    );
    assert_eq!(status(&cluster.get("e").await.unwrap()), "Claimed");
    // Its driver is the claim's, whatever the transition says now; its reasons are read again.
    let anew = json!({"driver": "another.example", "start": "begun", "end": "over", "allNodes": true});
    cluster.transition(DRAIN, anew).await;
    service.reply_next(Reply::Condition("over"));
    assert_eq!(ended(&world, "e").await, "Succeeded");
    assert_eq!(service.calls().pop().unwrap().call, "start");
}

#[tokio::test]
async fn a_drivers_node_scoped_transitions_are_removed_some_time_after_it() {
    let (cluster, world) =
        world_with(|options| options.timing.cleanup_delay = Duration::from_millis(500)).await;
    let (_service, front) = driver(&world, []).await;
    let spec =
        |node: &str, driver: &str| json!({"driver": driver, "start": START, "end": END, "nodeName": node});
    cluster.transition("own", spec("worker-1", DRIVER)).await;
    cluster.transition("other-node", spec("worker-2", DRIVER)).await;
    cluster
        .transition("other-driver", spec("worker-1", "another.example"))
        .await;
    front.remove();
    cluster.transition_gone("own").await;
    for kept in [DRAIN, "other-node", "other-driver"] {
        assert!(cluster.has_transition(kept).await, "{kept}");
    }
}

#[tokio::test]
async fn a_driver_that_returns_in_time_keeps_its_transitions() {
    let (cluster, world) = world_with(|options| options.timing.cleanup_delay = Duration::from_secs(2)).await;
    let (_service, front) = driver(&world, []).await;
    let own = json!({"driver": DRIVER, "start": START, "end": END, "nodeName": "worker-1"});
    cluster.transition("own", own).await;
    let begun = tokio::time::Instant::now();
    front.remove();
    drop(front);
    let _front = Registered::serve(&world.registry("b"), Plugin::new(DRIVER, &world.service("b")));
    let gone = Entry::CleanedUp {
        selector: format!("spec.nodeName=worker-1,spec.driver={DRIVER}"),
        error: None,
    };
    tokio::time::sleep_until(begun + Duration::from_millis(2500)).await;
    assert!(!world.kubelet.record().entries().contains(&gone));
    assert!(cluster.has_transition("own").await);
}

#[tokio::test]
async fn a_kubelet_that_starts_removes_all_transitions_of_its_node() {
    let (cluster, world) = world().await;
    let spec = |node: &str| json!({"driver": DRIVER, "start": START, "end": END, "nodeName": node});
    cluster.transition("own", spec("worker-1")).await;
    cluster.transition("other", spec("worker-2")).await;
    world.kubelet.restart().await.unwrap();
    cluster.transition_gone("own").await;
    assert!(cluster.has_transition("other").await);
    assert!(cluster.has_transition(DRAIN).await);
}
