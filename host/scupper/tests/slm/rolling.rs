//! A rolling update in the middle of a drain that the kubelet has claimed: the next driver continues it.

use std::time::Duration;

use crate::driver::Driver;
use crate::objects::{closed_budget, pod};
use crate::rig::{DRIVER, Rig};

/// The default grace period of a pod, with a margin for a busy machine.
const GRACE: Duration = Duration::from_secs(60);

async fn in_mid_drain() -> (Rig, Driver) {
    let rig = Rig::start().await;
    let mut free = pod("free");
    free["metadata"]["labels"]["app"] = serde_json::json!("free");
    rig.apply(free);
    rig.pods(&["a", "b"]);
    rig.apply(closed_budget());
    let driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    rig.until("the drain is in its middle", || {
        // Whether the API server refuses, or the engine sees the budget first, does not matter here.
        rig.pod_names() == ["a", "b"] && driver.output().contains("waits    default/a")
    })
    .await;
    (rig, driver)
}

async fn ends_well(rig: &Rig) {
    rig.delete_budget();
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
    assert_eq!(rig.evictions()["free"], [Some(201)]);
    rig.check_evicted_at_most_once();
}

#[tokio::test]
async fn the_next_one_is_there_before_the_last_one_ends() {
    let (rig, mut driver) = in_mid_drain().await;
    let _next = rig.driver(&[]).await;
    driver.terminate();
    assert!(driver.ended(GRACE).await.success(), "{}", driver.log());
    ends_well(&rig).await;
}

/// A kubelet that finds no driver at its next pass fails the claimed event: no driver can prevent that, so an update
/// under such a kubelet starts the next driver first.
#[tokio::test]
async fn without_a_next_driver_the_kubelet_fails_the_event_and_nothing_more_is_evicted() {
    let (rig, mut driver) = in_mid_drain().await;
    driver.terminate();
    assert!(driver.ended(GRACE).await.success(), "{}", driver.log());
    assert!(rig.list("leases.coordination.k8s.io").is_empty());
    assert_eq!(rig.end_of("drain").await, "Failed");
    rig.delete_budget();
    let _next = rig.driver(&[]).await;
    rig.passes(4).await;
    assert_eq!(rig.pod_names(), ["a", "b"]);
    rig.check_evicted_at_most_once();
}
