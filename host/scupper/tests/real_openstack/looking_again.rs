//! Nova is looked at again while the pods leave, and before the end.

use serde_json::json;

use crate::driver_mode::DriverMode;
use crate::rig;
use crate::testbed::{A, B, Testbed};

const OVERRIDES: &str =
    "an operator enabled nova-compute on compute-a; disable it again, or cancel this drain";

/// The driver has asked the pod to leave, which stays until [`leaves`].
async fn asked_to_leave(node: &DriverMode, pod: &str) {
    let line = format!("evict    {pod}");
    node.until("the pod is asked to leave", || node.reported().contains(&line))
        .await;
}

fn leaves(node: &DriverMode, namespace: &str, pod: &str) {
    node.api.store().delete("pods", namespace, pod).unwrap();
}

/// While a pod leaves, the tenant starts a server that was shut off.
pub(crate) async fn started(bed: &Testbed) {
    let nova = bed.nova();
    let id = bed.boot(1, &["--seconds", "0.5"]).remove(0);
    nova.stop(&id).await;
    let pods = vec![rig::compute_pod(), rig::pod("slow").stuck()];
    let mut node = rig::node_with(bed, &[], pods).await;
    node.start().await;
    node.begin_drain("drain-1");
    asked_to_leave(&node, "shop/slow").await;
    nova.start(&id).await;
    leaves(&node, "shop", "slow");
    assert_eq!(node.ends("drain-1").await, "Succeeded", "{}", node.reported());
    assert_eq!(nova.host_of(&id), B, "{}", node.reported());
    assert_eq!(nova.server(&id)["status"], "ACTIVE");
    let reported = node.reported();
    let place = |words: &str| {
        let place = reported.find(words);
        place.unwrap_or_else(|| panic!("{words}\n{reported}"))
    };
    assert!(
        place("openstack finished before-wave") < place("wave     2 of 2, nova-compute"),
        "{reported}"
    );
}

/// The same, and nova-compute runs in no pod that leaves.
pub(crate) async fn started_before_the_end(bed: &Testbed) {
    let nova = bed.nova();
    let id = bed.boot(1, &["--seconds", "0.5"]).remove(0);
    nova.stop(&id).await;
    let mut node = rig::node_with(bed, &[], vec![rig::pod("slow").stuck()]).await;
    node.start().await;
    node.begin_drain("drain-1");
    asked_to_leave(&node, "shop/slow").await;
    nova.start(&id).await;
    leaves(&node, "shop", "slow");
    assert_eq!(node.ends("drain-1").await, "Succeeded", "{}", node.reported());
    assert_eq!(nova.host_of(&id), B, "{}", node.reported());
}

/// A server that is started while nova-compute itself leaves cannot be migrated any more.
pub(crate) async fn stranded(bed: &Testbed) {
    let nova = bed.nova();
    let id = bed.boot(1, &["--prefix", "late"]).remove(0);
    nova.stop(&id).await;
    let mut node = rig::node_with(bed, &[], vec![rig::compute_pod().stuck()]).await;
    node.start().await;
    node.begin_drain("drain-1");
    asked_to_leave(&node, "openstack/nova-compute").await;
    nova.start(&id).await;
    bed.stop_compute(A);
    nova.until("it is down", |nova| nova.service(A)["state"] == "down")
        .await;
    leaves(&node, "openstack", "nova-compute");
    let ended = node.ends("drain-1").await;
    bed.start_compute(A);
    assert_ne!(ended, "Succeeded", "{}", node.reported());
    let words = format!(
        "1 server on compute-a cannot leave, because nova-compute is down there: server late-0 ({})",
        &id[..8]
    );
    assert!(node.reported().contains(&words), "{}", node.reported());
}

/// A script enables nova-compute while a pod leaves, and a new server lands.
pub(crate) async fn enabled(bed: &Testbed) {
    let nova = bed.nova();
    let pods = vec![rig::compute_pod(), rig::pod("slow").stuck()];
    let mut node = rig::node_with(bed, &[], pods).await;
    node.start().await;
    node.begin_drain("drain-1");
    asked_to_leave(&node, "shop/slow").await;
    nova.enable(A);
    let id = nova.create(bed.image(), A, &json!({}));
    nova.until_status(&id, "ACTIVE").await;
    leaves(&node, "shop", "slow");
    node.until("it waits for the operator", || {
        node.reported().contains(OVERRIDES)
    })
    .await;
    assert!(!node.reported().contains("Drained in"), "{}", node.reported());
    assert_eq!(nova.service(A)["status"], "enabled", "it is not overridden");
    let events = node.events("ComputeServiceEnabledMeanwhile");
    assert_eq!(events.len(), 1, "{events:?}");
    nova.disable(A, "as it was");
    assert_eq!(node.ends("drain-1").await, "Succeeded", "{}", node.reported());
    assert_eq!(nova.host_of(&id), B, "{}", node.reported());
    assert_eq!(nova.service(A)["disabled_reason"], "as it was");
}

/// The same while servers move.
pub(crate) async fn enabled_while_servers_move(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--mode", "stuck"]);
    let mut node = rig::node(bed, &[("parallel", "1")], json!({})).await;
    node.start().await;
    node.begin_drain("drain-1");
    let moving = |nova: &crate::nova::Nova| ids.iter().any(|id| nova.migrations(id) == ["running"]);
    nova.until("one moves", moving).await;
    nova.enable(A);
    node.until("it waits for the operator", || {
        node.reported().contains(OVERRIDES)
    })
    .await;
    let events = || node.events("ComputeServiceEnabledMeanwhile").len();
    node.until("an Event says so", || events() == 1).await;
    assert_eq!(nova.service(A)["status"], "enabled", "it is not overridden");
    node.cancel("drain-1").await;
    assert_eq!(nova.service(A)["status"], "enabled", "{}", node.reported());
    let all: Vec<_> = ids.iter().flat_map(|id| nova.migrations(id)).collect();
    assert_eq!(all, ["cancelled"], "{}", node.reported());
    assert_eq!(events(), 1);
}
