//! slurmctld restarts, or seems to, while a node is drained; and what its log alone knows.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use scupper_engine::HookPhase;
use serde_json::{Value, json};

use crate::driver::{WORKER, node};
use crate::driver_mode::DriverMode;
use crate::rig::{OURS, Rig};
use crate::testbed::{NODE, Testbed, until};

fn resume(testbed: &Testbed) {
    testbed.client(&["scontrol", "update", &format!("NodeName={NODE}"), "State=RESUME"]);
}

/// Whether the policy has seen that slurmctld has certainly saved the drain: its state no longer says when slurmctld started.
fn is_saved(driver: &DriverMode) -> bool {
    let node = driver.api.store().get("nodes", "", WORKER).unwrap();
    let mark = node["metadata"]["annotations"]["scupper.dev/drain"].as_str();
    let mark: Value = serde_json::from_str(mark.unwrap()).unwrap();
    let state = mark["hooks"][0]["state"].as_str().unwrap_or_default();
    let state = STANDARD_NO_PAD.decode(state).unwrap();
    let state: Value = serde_json::from_slice(&state).unwrap_or_default();
    state["d"] == true && state["c"].is_null()
}

/// How often slurmctld was asked for its nodes, since its start or `sdiag --reset`.
fn asked_for_nodes(testbed: &Testbed) -> u32 {
    let shown = testbed.client(&["sdiag"]);
    let line = shown.lines().find(|line| line.contains("REQUEST_NODE_INFO "));
    let count = line.and_then(|line| line.split_once("count:"));
    count.map_or(0, |(_, rest)| {
        rest.split_whitespace().next().unwrap().parse().unwrap()
    })
}

/// The policy has looked from beginning to end, and has left the operator's node alone.
async fn leaves_it_resumed(testbed: &Testbed) {
    let before = asked_for_nodes(testbed);
    until("the policy has looked", async || {
        asked_for_nodes(testbed) >= before + 2
    })
    .await;
    assert_eq!(testbed.node(), "mixed none");
}

/// A driver whose drain waits for a job.
async fn waiting_for_a_job(testbed: &Testbed) -> DriverMode {
    let mut driver = node(testbed, &[], json!({}), Vec::new()).await;
    driver.start().await;
    let job = testbed.submit(300, &[]);
    driver.begin_drain("drain");
    let waits = format!("waits for job {job}: ");
    driver
        .until("it waits", || driver.reported().contains(&waits))
        .await;
    driver
}

#[tokio::test]
async fn in_driver_mode_reset_statistics_and_a_restart_in_order_override_no_operator_after_30_seconds() {
    let Some(testbed) = Testbed::up("reset", &[]) else {
        return;
    };
    let driver = waiting_for_a_job(&testbed).await;
    until("slurmctld has saved the drain", async || is_saved(&driver)).await;
    resume(&testbed);
    // A job that starts clears the reason.
    testbed.submit(300, &[]);
    assert_eq!(testbed.node(), "mixed none");
    testbed.client(&["sdiag", "--reset"]);
    leaves_it_resumed(&testbed).await;
    testbed.daemon("slurmctld", "stop");
    testbed.daemon("slurmctld", "start");
    until("slurmctld knows its nodes again", async || {
        testbed.node() == "mixed none"
    })
    .await;
    leaves_it_resumed(&testbed).await;
    let reported = driver.reported();
    assert!(
        reported.contains("an operator resumed slurm-worker-0 in Slurm")
            && !reported.contains("lost the drain"),
        "{reported}"
    );
}

/// Slurm 26.05 reports when slurmctld started, and 24.11 whether it has loaded its partitions since.
#[tokio::test]
async fn in_driver_mode_reset_statistics_override_no_operator() {
    for suite in ["trixie", "forky"] {
        let Some(testbed) = Testbed::up(&format!("reset-{suite}"), &["--suite", suite]) else {
            return;
        };
        let driver = waiting_for_a_job(&testbed).await;
        // Before a look that would only see our reason.
        testbed.client(&["sdiag", "--reset"]);
        resume(&testbed);
        // A job that starts clears the reason.
        testbed.submit(300, &[]);
        driver
            .until("it has seen the resume", || {
                let reported = driver.reported();
                reported.contains("an operator resumed slurm-worker-0 in Slurm")
                    || reported.contains("lost the drain")
            })
            .await;
        assert!(!is_saved(&driver), "the test was too slow");
        // Where slurmd was slow to answer, Slurm marks the node's state for a moment.
        until("slurmd answers", async || testbed.node() == "mixed none").await;
        leaves_it_resumed(&testbed).await;
        let reported = driver.reported();
        assert!(!reported.contains("lost the drain"), "{reported}");
        let events = driver.events("SlurmNodeResumed");
        assert_eq!(events.len(), 1, "{events:?}\n{reported}");
    }
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
