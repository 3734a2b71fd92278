//! A kubelet that learns SLM, or forgets it, while an event is claimed: either the kubelet or the driver continues,
//! never both.

use std::time::Duration;

use scupper_simulator::kubelet::Entry;

use crate::node::Node;
use crate::objects::closed_budget;
use crate::rig::{DRIVER, Rig};

/// A starting kubelet registers the driver before it reads events; a real one may do it the other way round, and then
/// fails the claimed ones.
async fn node(gate: bool) -> Node {
    let rig = Rig::with(|options| {
        options.gate = gate;
        options.timing.sync_poll = Duration::from_secs(3);
    });
    Node::with(rig.await).await
}

#[tokio::test]
async fn a_kubelet_that_learns_slm_in_mid_drain_takes_the_event_over() {
    let node = node(false).await;
    node.pods(&["a", "b", "c"]);
    node.apply(closed_budget());
    let driver = node.claimer(&[]).await;
    node.event("drain", DRIVER);
    node.until("the drain has begun", || !node.evictions().is_empty())
        .await;
    node.kubelet.set_gate(true);
    node.kubelet.restart().await.unwrap();
    node.until("the driver leaves it to the kubelet", || {
        driver.log().contains("leads=false")
    })
    .await;
    let mark = node.api.mark();
    node.event("second", DRIVER);
    node.delete_budget();
    for event in ["drain", "second"] {
        assert_eq!(node.end_of(event).await, "Succeeded");
        assert_eq!(node.statuses(event), ["Pending", "Claimed", "Succeeded"]);
    }
    assert!(
        node.event_writes(mark).is_empty(),
        "{:#?}",
        node.event_writes(mark)
    );
    let ended: Vec<_> = node.kubelet.record().finished();
    assert_eq!(ended.len(), 2, "the kubelet ended both: {ended:?}");
    let claims = node
        .kubelet
        .record()
        .pick(|entry| matches!(entry, Entry::Claimed { .. }).then_some(()));
    assert_eq!(claims.len(), 1, "it claimed only the second");
    assert!(node.pod_names().is_empty());
    node.check_evicted_at_most_once();
}

#[tokio::test]
async fn a_kubelet_that_forgets_slm_in_mid_drain_leaves_the_event_to_the_driver() {
    let node = node(true).await;
    node.pods(&["a", "b", "c"]);
    node.apply(closed_budget());
    let driver = node.driver(&[]).await;
    node.event("drain", DRIVER);
    node.until("the drain has begun", || !node.evictions().is_empty())
        .await;
    assert!(node.event_writes(0).is_empty());
    // Not in the middle of a call, which would fail the event.
    let held = node.kubelet.hold().await;
    node.kubelet.set_gate(false);
    node.kubelet.restart().await.unwrap();
    drop(held);
    node.until("the driver continues in its place", || {
        driver.log().contains("leads=true")
    })
    .await;
    node.delete_budget();
    assert_eq!(node.end_of("drain").await, "Succeeded");
    assert_eq!(node.statuses("drain"), ["Pending", "Claimed", "Succeeded"]);
    assert!(node.kubelet.record().finished().is_empty());
    assert!(node.pod_names().is_empty());
    node.check_evicted_at_most_once();
}
