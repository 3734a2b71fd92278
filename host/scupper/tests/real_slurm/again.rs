//! A second drain of a node that a first one left out of service: the second does not revert the first's changes.

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::driver::{WORKER, forget_the_last_event, node};
use crate::driver_mode::DriverMode;
use crate::testbed::{NODE, Testbed, until};

/// A drain that fails by its deadline does so soon.
const SLA: &str = "25s";

async fn is_idle(testbed: &Testbed) {
    until("the node is idle", async || testbed.node().starts_with("idle")).await;
}

/// Drains that are cancelled and that fail leave Slurm as `drained` has it, and the cordon; the uncordon lifts both.
async fn second_drains(testbed: &Testbed, rig: &DriverMode, drained: &str) {
    // The budget never allows the eviction of this pod.
    let pod = objects::pod("shop", "cart", WORKER).owner_replicaset("cart");
    let store = rig.api.store();
    store.apply(pod.label("app", "cart").build()).unwrap();
    store
        .apply(objects::budget("shop", "cart", &[("app", "cart")], 1))
        .unwrap();
    rig.begin_drain("cancelled");
    rig.until("it waits", || rig.reported().contains("shop/cart: budget"))
        .await;
    rig.cancel("cancelled").await;
    assert_eq!((testbed.node().as_str(), rig.is_cordoned()), (drained, true));
    forget_the_last_event(rig);
    assert_ne!(rig.drain("fails").await, "Succeeded", "{}", rig.reported());
    assert_eq!((testbed.node().as_str(), rig.is_cordoned()), (drained, true));
    assert_eq!(rig.uncordon("uncordon").await, "Succeeded", "{}", rig.reported());
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
    assert_eq!(rig.drain("first").await, "Succeeded", "{}", rig.reported());
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
        drained.starts_with("drained scupper: node=worker-1 cluster="),
        "{drained}"
    );
    rig.start().await;
    second_drains(&testbed, &rig, &drained).await;
}

#[tokio::test]
async fn a_failed_drain_whose_cordon_stays_leaves_the_node_drained_and_a_second_one_keeps_that() {
    let Some(testbed) = Testbed::up("held", &[]) else {
        return;
    };
    let mut rig = node(&testbed, &[], json!({"sla": SLA}), Vec::new()).await;
    rig.start().await;
    let job = testbed.submit(300, &[]);
    let waits = format!("waits for job {job}: ");
    assert_ne!(rig.drain("first").await, "Succeeded", "{}", rig.reported());
    let by_deadline = "the deadline passed while policy slurm reported: 1 job on slurm-worker-0";
    assert!(rig.reported().contains(by_deadline), "{}", rig.reported());
    let drained = testbed.node();
    assert!(
        drained.starts_with("draining scupper: ") && drained.ends_with(": first") && rig.is_cordoned(),
        "{drained}"
    );
    forget_the_last_event(&rig);
    let before = rig.reported().matches(&waits).count();
    rig.begin_drain("second");
    rig.until("it waits", || rig.reported().matches(&waits).count() > before)
        .await;
    rig.cancel("second").await;
    assert_eq!((testbed.node(), rig.is_cordoned()), (drained, true));
    assert_eq!(rig.uncordon("uncordon").await, "Succeeded", "{}", rig.reported());
    assert!(testbed.node().starts_with("mixed"), "{}", testbed.node());
}

/// What it waited for before is not why it ended.
#[tokio::test]
async fn in_driver_mode_a_drain_that_ends_while_slurmctld_is_away_names_that() {
    let Some(testbed) = Testbed::up("away", &[]) else {
        return;
    };
    let mut rig = node(&testbed, &[], json!({"sla": "25s"}), Vec::new()).await;
    rig.start().await;
    let job = testbed.submit(300, &[]);
    let waits = format!("waits for job {job}: ");
    rig.begin_drain("first");
    rig.until("it waits", || rig.reported().contains(&waits)).await;
    testbed.daemon("slurmctld", "stop");
    assert_ne!(rig.ends("first").await, "Succeeded", "{}", rig.reported());
    testbed.daemon("slurmctld", "start");
    let cause = "the deadline passed while policy slurm reported: slurmrestd cannot reach slurmctld";
    assert!(rig.reported().contains(cause), "{}", rig.reported());
    let events = rig.events("DeadlineExceeded");
    assert!(events.iter().any(|note| note.contains(cause)), "{events:?}");
}

#[tokio::test]
async fn a_failed_drain_that_lifts_its_cordon_resumes_the_node_in_slurm() {
    let Some(testbed) = Testbed::up("rolled-back", &[]) else {
        return;
    };
    let drain = json!({"sla": SLA, "on-failure": "rollback"});
    let mut rig = node(&testbed, &[], drain, Vec::new()).await;
    rig.start().await;
    testbed.submit(300, &[]);
    assert_ne!(rig.drain("first").await, "Succeeded", "{}", rig.reported());
    assert!(testbed.node().starts_with("mixed"), "{}", testbed.node());
    assert!(!rig.is_cordoned());
}

#[tokio::test]
async fn in_driver_mode_a_node_that_stays_drained_is_named() {
    let Some(testbed) = Testbed::up("named", &[]) else {
        return;
    };
    let mut rig = node(&testbed, &[], json!({}), Vec::new()).await;
    rig.start().await;
    let name = format!("NodeName={NODE}");
    testbed.client(&["scontrol", "update", &name, "State=DRAIN", "Reason=ticket 7"]);
    assert_eq!(rig.drain("drain").await, "Succeeded", "{}", rig.reported());
    let found = "slurm-worker-0 was already drained in Slurm, reason given by root: ticket 7";
    assert_eq!(rig.reported().matches(found).count(), 1, "{}", rig.reported());
    assert_eq!(rig.uncordon("uncordon").await, "Succeeded", "{}", rig.reported());
    let stays =
        "slurm-worker-0 stays DRAIN in Slurm, reason given by root: ticket 7; Scupper did not do this";
    assert_eq!(rig.reported().matches(stays).count(), 1, "{}", rig.reported());
    assert_eq!(rig.events("SlurmNodeFoundDrained").len(), 1);
    let events = rig.events("SlurmNodeStaysOut");
    assert!(events.len() == 1 && events[0].contains(stays), "{events:?}");
    assert_eq!(testbed.node(), "drained ticket 7");
}

#[tokio::test]
async fn after_a_drain_from_a_terminal_and_kubectl_uncordon_scupper_uncordon_restores_the_node() {
    let Some(testbed) = Testbed::up("kubectl", &[]) else {
        return;
    };
    let mut rig = node(&testbed, &[], json!({}), Vec::new()).await;
    let ended = rig.types(&["drain", WORKER]).ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let doctor = rig.types(&["doctor", "--node", WORKER]).ended().await;
    assert!(
        doctor
            .stdout
            .contains("when the maintenance is over: scupper uncordon worker-1"),
        "{doctor:?}"
    );
    let lift = |node: &mut Value| node["spec"]["unschedulable"] = json!(false);
    rig.api.store().edit("nodes", "", WORKER, lift).unwrap();
    assert!(testbed.node().starts_with("drained scupper: "));
    let ended = rig.types(&["uncordon", WORKER]).ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    is_idle(&testbed).await;
}
