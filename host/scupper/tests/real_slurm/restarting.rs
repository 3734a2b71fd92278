//! slurmctld restarts, or seems to, while a node is drained; and what its log alone knows.

use std::time::{Duration, Instant};

use scupper_engine::HookPhase;
use serde_json::json;

use crate::driver::node;
use crate::rig::{OURS, Rig};
use crate::testbed::{NODE, Testbed, until};

fn resume(testbed: &Testbed) {
    testbed.client(&["scontrol", "update", &format!("NodeName={NODE}"), "State=RESUME"]);
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
    resume(&testbed);
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
async fn in_driver_mode_reset_statistics_do_not_override_an_operator() {
    // Slurm 26.05 reports when slurmctld started; before, this holds for a drain that has lasted 30 s.
    let Some(testbed) = Testbed::up("reset-driver", &["--suite", "forky"]) else {
        return;
    };
    let mut driver = node(&testbed, &[], json!({}), Vec::new()).await;
    driver.start().await;
    let job = testbed.submit(300, &[]);
    driver.begin_drain("drain");
    let waits = format!("waits for job {job}: ");
    driver
        .until("it waits", || driver.reported().contains(&waits))
        .await;
    resume(&testbed);
    testbed.client(&["sdiag", "--reset"]);
    driver
        .until("it waits for the operator", || {
            driver
                .reported()
                .contains("an operator resumed slurm-worker-0 in Slurm")
        })
        .await;
    assert!(
        !driver.reported().contains("lost the drain"),
        "{}",
        driver.reported()
    );
    // Where slurmd was slow to answer, Slurm marks the node's state for a moment.
    until("slurmd answers", async || {
        let node = testbed.node();
        assert!(node.starts_with("mixed") && node.ends_with(" none"), "{node}");
        node == "mixed none"
    })
    .await;
    let events = driver.events("SlurmNodeResumed");
    assert_eq!(events.len(), 1, "{events:?}\n{}", driver.reported());
}

/// A slurmctld that is killed forgets what it has not saved, such as the drain that a test has just begun.
#[tokio::test]
async fn a_controller_that_takes_its_time_to_end_is_waited_for() {
    const SLOW: Duration = Duration::from_secs(4);
    let Some(testbed) = Testbed::up("slow-end", &[]) else {
        return;
    };
    testbed.daemon("slurmctld", "pause");
    std::thread::scope(|scope| {
        let stops = scope.spawn(|| testbed.daemon("slurmctld", "stop"));
        std::thread::sleep(SLOW);
        testbed.daemon("slurmctld", "resume");
        stops.join().unwrap();
    });
    let log = testbed.log("slurmctld.out");
    assert!(log.contains("Saving all slurm state"), "{log}");
}

#[tokio::test]
async fn an_error_of_an_epilog_during_a_drain_is_only_in_the_log() {
    let Some(testbed) = Testbed::up("epilog-error", &["--epilog", "1"]) else {
        return;
    };
    std::fs::write(testbed.folder().join("etc/epilog"), "#!/bin/sh\nexit 1\n").unwrap();
    let rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    testbed.client(&["scancel", &job.to_string()]);
    rig.done(HookPhase::BeforeDrain).await;
    let line = format!("epilog error on {NODE}, draining the node");
    until("slurmctld logs it", async || {
        testbed.log("slurmctld.out").contains(&line)
    })
    .await;
    assert_eq!(testbed.node(), format!("drained {OURS}"));
}
