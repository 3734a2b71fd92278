//! A second drain of a node that a first one left out of service: what the first did is not the second's to undo.

use scupper_simulator::api::objects;
use serde_json::json;

use crate::driver::{WORKER, forget_the_last_event, node};
use crate::driver_mode::DriverMode;
use crate::testbed::{Testbed, until};

/// A drain that fails by its deadline does so soon.
const SLA: &str = "25s";

async fn is_idle(testbed: &Testbed) {
    until("the node is idle", async || testbed.node().starts_with("idle")).await;
}

/// Drains that are cancelled and that fail leave Slurm as `drained` has it, and the cordon; the uncordon lifts both.
async fn second_drains(testbed: &Testbed, rig: &DriverMode, drained: &str) {
    // No budget lets this pod go.
    let pod = objects::pod("shop", "cart", WORKER).owner_replicaset("cart");
    let store = rig.api.store();
    store.apply(pod.label("app", "cart").build()).unwrap();
    store
        .apply(objects::budget("shop", "cart", &[("app", "cart")], 1))
        .unwrap();
    rig.begin_drain("cancelled");
    rig.until("it waits", || rig.told().contains("shop/cart: disruption budget"))
        .await;
    rig.cancel("cancelled").await;
    assert_eq!((testbed.node().as_str(), rig.is_cordoned()), (drained, true));
    forget_the_last_event(rig);
    assert_ne!(rig.drain("fails").await, "Succeeded", "{}", rig.told());
    assert_eq!((testbed.node().as_str(), rig.is_cordoned()), (drained, true));
    assert_eq!(rig.uncordon("uncordon").await, "Succeeded", "{}", rig.told());
    is_idle(testbed).await;
    assert!(!rig.is_cordoned());
}

#[tokio::test]
async fn the_drivers_second_drain_that_is_cancelled_or_fails_keeps_the_node_drained() {
    let Some(testbed) = Testbed::up("again", &[]) else {
        return;
    };
    let mut rig = node(&testbed, &[], json!({"sla": SLA}), Vec::new()).await;
    rig.start().await;
    assert_eq!(rig.drain("first").await, "Succeeded", "{}", rig.told());
    let drained = testbed.node();
    assert!(drained.ends_with(": first"), "{drained}");
    forget_the_last_event(&rig);
    second_drains(&testbed, &rig, &drained).await;
}

#[tokio::test]
async fn the_drivers_second_drain_keeps_what_a_terminal_drained() {
    let Some(testbed) = Testbed::up("handed", &[]) else {
        return;
    };
    let mut rig = node(&testbed, &[], json!({"sla": SLA}), Vec::new()).await;
    let ended = rig.types(&["drain", WORKER]).ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let drained = testbed.node();
    assert!(
        drained.starts_with("drained scupper: node=worker-1 drain="),
        "{drained}"
    );
    rig.start().await;
    second_drains(&testbed, &rig, &drained).await;
}
