//! Slurm is looked at again while the pods leave, and before the end.

use std::time::{Duration, Instant};

use scupper_engine::HookPhase;
use scupper_simulator::api::objects;
use serde_json::json;

use crate::driver::{WORKER, node};
use crate::rig::Rig;
use crate::testbed::{NODE, Testbed, until};

fn update(testbed: &Testbed, what: &[&str]) {
    let name = format!("NodeName={NODE}");
    testbed.client(&[&["scontrol", "update", name.as_str()], what].concat());
}

#[tokio::test]
async fn in_driver_mode_a_node_that_an_operator_resumes_during_the_evictions_is_not_called_drained() {
    let Some(testbed) = Testbed::up("resumed-late", &[]) else {
        return;
    };
    let pod = objects::pod("shop", "slow", WORKER)
        .owner_replicaset("slow")
        .takes(4.0);
    let mut rig = node(&testbed, &[], json!({}), vec![pod.build()]).await;
    rig.start().await;
    rig.begin_drain("drain");
    rig.until("the pod is asked to leave", || {
        rig.reported().contains("evict    shop/slow")
    })
    .await;
    update(&testbed, &["State=RESUME"]);
    let job = testbed.submit(300, &[]);
    let words = "an operator resumed slurm-worker-0 in Slurm; drain it there again";
    rig.until("it waits for the operator", || rig.reported().contains(words))
        .await;
    assert!(!rig.reported().contains("Drained in"), "{}", rig.reported());
    assert_eq!(testbed.job(job), "RUNNING");
    assert!(
        testbed.node().starts_with("mixed"),
        "it is not overridden: {}",
        testbed.node()
    );
    assert_eq!(rig.events("SlurmNodeResumed").len(), 1);
    update(&testbed, &["State=DRAIN", "Reason=as it was"]);
    let waits = format!("waits for job {job}: ");
    rig.until("it waits for the job", || rig.reported().contains(&waits))
        .await;
    testbed.client(&["scancel", &job.to_string()]);
    assert_eq!(rig.ends("drain").await, "Succeeded", "{}", rig.reported());
    assert_eq!(testbed.node(), "drained as it was");
}

#[tokio::test]
async fn in_driver_mode_the_whole_node_is_held_without_a_slurm_pod_if_configured() {
    let Some(testbed) = Testbed::up("unheld-hold", &[]) else {
        return;
    };
    let pod = objects::pod("shop", "cart", WORKER)
        .owner_replicaset("cart")
        .build();
    let config = [("hold", "slurm-pods"), ("no-slurm-pods", "hold")];
    let mut rig = node(&testbed, &config, json!({}), vec![pod]).await;
    rig.start().await;
    let job = testbed.submit(300, &[]);
    rig.begin_drain("drain");
    let waits = format!("waits for job {job}: ");
    rig.until("it waits", || rig.reported().contains(&waits)).await;
    assert!(!rig.reported().contains("evict    "), "{}", rig.reported());
    testbed.client(&["scancel", &job.to_string()]);
    assert_eq!(rig.ends("drain").await, "Succeeded", "{}", rig.reported());
}

#[tokio::test]
async fn statistics_that_were_reset_and_a_restart_in_order_do_not_override_an_operator() {
    let Some(testbed) = Testbed::up("reset", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    // By then slurmctld has saved the drain.
    let begun = Instant::now();
    until("the drain is older than that", async || {
        rig.waits().await;
        begun.elapsed() > Duration::from_secs(31)
    })
    .await;
    update(&testbed, &["State=RESUME"]);
    // A job that starts clears the reason.
    testbed.submit(300, &[]);
    assert_eq!(testbed.node(), "mixed none");
    testbed.client(&["sdiag", "--reset"]);
    let waits = rig.waits().await;
    assert!(waits.progress.starts_with("an operator resumed"), "{waits:?}");
    assert_eq!(testbed.node(), "mixed none");
    testbed.daemon("slurmctld", "stop");
    testbed.daemon("slurmctld", "start");
    until("slurmctld knows its nodes again", async || {
        testbed.node() == "mixed none"
    })
    .await;
    let waits = rig.waits().await;
    assert!(waits.progress.starts_with("an operator resumed"), "{waits:?}");
    assert_eq!(testbed.node(), "mixed none");
}

#[tokio::test]
async fn a_reboot_that_an_operator_requested_comes_first_and_the_drain_follows() {
    let Some(testbed) = Testbed::up("reboot", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(300, &[]);
    let reboot = [
        "scontrol",
        "reboot",
        "ASAP",
        "nextstate=RESUME",
        "reason=new kernel",
        NODE,
    ];
    testbed.client(&reboot);
    rig.done(HookPhase::BeforeCordon).await;
    let waits = rig.waits().await;
    assert!(
        waits
            .waiting_for
            .iter()
            .any(|on| on.what == NODE && on.detail.starts_with("reboots by `scontrol reboot`: ")),
        "{waits:?}"
    );
    testbed.client(&["scancel", &job.to_string()]);
    until("the reboot is under way", async || {
        rig.waits().await;
        testbed
            .client(&["scontrol", "show", "node", NODE])
            .contains("REBOOT_ISSUED")
    })
    .await;
    testbed.daemon(&format!("slurmd-{NODE}"), "reboot");
    rig.done(HookPhase::BeforeDrain).await;
    assert_eq!(testbed.node(), format!("drained {}", crate::rig::OURS));
}
