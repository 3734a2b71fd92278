//! DrainRequests whose drain waits for the node's Lease.

use serde_json::json;

use crate::drain_requests::Site;
use crate::rig::NODE;

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
