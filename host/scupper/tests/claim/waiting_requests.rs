//! DrainRequests whose drain waits: for the node's Lease, or for another drain.

use std::time::Duration;

use serde_json::json;

use crate::drain_requests::Site;
use crate::objects::{pod, slow};
use crate::rig::{DRIVER, NODE};

/// The time of a request begins with its drain.
#[tokio::test]
async fn a_request_waits_until_the_driver_holds_the_nodes_lease() {
    let site = Site::start().await;
    site.pods(&["a"]);
    site.apply(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "scupper", "name": NODE},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 300, "leaseTransitions": 1},
    }));
    let _driver = site.driver(json!({"timeout": "60s"}), json!([])).await;
    site.create("1", json!({})).await;
    site.until("the request is answered", || {
        !site.condition("1", "DrainInProgress").is_empty()
    })
    .await;
    assert_eq!(site.condition("1", "DrainInProgress"), "False Waiting");
    assert!(site.evictions().is_empty());
    let leases = "leases.coordination.k8s.io";
    site.api.store().delete(leases, "scupper", NODE).unwrap();
    site.becomes("1", "DrainComplete", "True Drained").await;
}

/// The request waits while the event's drain runs, and begins at the moment in which that ends.
#[tokio::test]
async fn an_event_is_drained_for_once_although_a_request_waits_for_its_end() {
    let site = Site::start().await;
    site.apply(slow(pod("a"), Duration::from_secs(8)));
    site.pods(&["b", "c"]);
    let driver = site.usual_driver().await;
    site.event("drain", DRIVER);
    site.pods_are_asked_to_leave().await;
    site.create("1", json!({})).await;
    site.becomes("1", "DrainInProgress", "False Waiting").await;
    let end = site.end_of("drain").await;
    site.becomes("1", "DrainComplete", "True Drained").await;
    let output = driver.output();
    assert_eq!(end, "Succeeded");
    assert_eq!(output.matches("for LifecycleEvent drain").count(), 1, "{output}");
}
