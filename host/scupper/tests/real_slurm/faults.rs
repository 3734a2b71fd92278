//! Failures of Slurm, slurmrestd or the token.

use std::time::{Duration, Instant};

use scupper_engine::{HookPhase, StepOutcome};
use serde_json::json;

use crate::driver;
use crate::rig::{OURS, Rig};
use crate::testbed::{NODE, Testbed, until};

#[tokio::test]
async fn trap_07_a_drain_that_a_frozen_controller_took_late_is_found() {
    let Some(testbed) = Testbed::up("frozen", &["--message-timeout", "3"]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    rig.done(HookPhase::BeforeCordon).await;
    rig.done(HookPhase::OnCancel).await;
    testbed.daemon("slurmctld", "pause");
    rig.fails(HookPhase::BeforeDrain, false, "retrying").await;
    testbed.daemon("slurmctld", "resume");
    rig.done(HookPhase::BeforeDrain).await;
    assert_eq!(testbed.node(), format!("drained {OURS}"));
}

#[tokio::test]
async fn trap_08_an_unreachable_controller_is_reported_and_retried() {
    let Some(testbed) = Testbed::up("stopped", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    rig.waits().await;
    testbed.daemon("slurmctld", "stop");
    let begun = Instant::now();
    rig.fails(HookPhase::BeforeDrain, false, "slurmrestd cannot reach slurmctld")
        .await;
    assert!(
        begun.elapsed() > Duration::from_secs(5),
        "slurmrestd was asked: {:?}",
        begun.elapsed()
    );
    testbed.daemon("slurmctld", "start");
    until("it waits again", async || {
        matches!(
            rig.step(HookPhase::BeforeDrain).await,
            StepOutcome::Pending { .. }
        )
    })
    .await;
    until("the job is known again", async || testbed.job(job) == "RUNNING").await;
    testbed.client(&["scancel", &job.to_string()]);
    rig.done(HookPhase::BeforeDrain).await;
}

#[tokio::test]
async fn trap_15_a_freshly_started_controller_is_not_trusted_too_soon() {
    let Some(testbed) = Testbed::up("restarted", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    rig.waits().await;
    testbed.daemon("slurmctld", "stop");
    testbed.daemon("slurmctld", "start");
    // At no moment of its start does the node count as drained.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        let outcome = rig.step(HookPhase::BeforeDrain).await;
        assert_ne!(outcome, StepOutcome::Done);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(testbed.node(), format!("draining {OURS}"));
    testbed.client(&["scancel", &job.to_string()]);
    rig.done(HookPhase::BeforeDrain).await;
}

#[tokio::test]
async fn a_drain_that_the_controller_lost_in_a_crash_is_repeated() {
    // The second one reports when it started.
    for suite in ["trixie", "forky"] {
        let Some(testbed) = Testbed::up(&format!("lost-{suite}"), &["--suite", suite]) else {
            return;
        };
        let rig = Rig::load(&testbed, &[]).await;
        let job = testbed.submit(300, &[]);
        testbed.keep_state().await;
        rig.done(HookPhase::BeforeCordon).await;
        rig.waits().await;
        testbed.crash_and_forget();
        until("the node is drained again", async || {
            rig.step(HookPhase::BeforeDrain).await;
            testbed.node() == format!("draining {OURS}")
        })
        .await;
        rig.waits().await;
        testbed.client(&["scancel", &job.to_string()]);
        rig.done(HookPhase::BeforeDrain).await;
    }
}

#[tokio::test]
async fn in_driver_mode_a_drain_that_the_controller_lost_is_made_again() {
    let Some(testbed) = Testbed::up("lost-driver", &[]) else {
        return;
    };
    let mut driver = driver::node(&testbed, &[], json!({}), Vec::new()).await;
    driver.start().await;
    let job = testbed.submit(300, &[]);
    testbed.keep_state().await;
    driver.begin_drain("drain");
    let waits = format!("waits for job {job}: ");
    driver
        .until("it waits", || driver.reported().contains(&waits))
        .await;
    testbed.crash_and_forget();
    let lost = "lost the drain of slurm-worker-0; draining it again";
    driver.until(lost, || driver.reported().contains(lost)).await;
    until("the node is drained again", async || {
        testbed.node().starts_with("draining scupper: ")
    })
    .await;
    testbed.client(&["scancel", &job.to_string()]);
    assert_eq!(driver.ends("drain").await, "Succeeded", "{}", driver.reported());
    assert_eq!(
        driver.events("SlurmNodeDraining").len(),
        1,
        "one Event, counted twice"
    );
}

#[tokio::test]
async fn slurmrestd_that_is_away_is_waited_for() {
    let Some(testbed) = Testbed::up("restd", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    testbed.daemon("slurmrestd", "stop");
    rig.fails(HookPhase::BeforeCordon, false, "unreachable").await;
    testbed.daemon("slurmrestd", "start");
    rig.done(HookPhase::BeforeCordon).await;
    rig.done(HookPhase::BeforeDrain).await;
}

/// A token of slurm's that has expired.
fn expired(testbed: &Testbed) -> String {
    let token = testbed.token("slurm", 1);
    // The token contains its expiry; Slurm compares whole seconds.
    std::thread::sleep(Duration::from_secs(2));
    token
}

#[tokio::test]
async fn a_token_that_was_never_good_ends_the_drain_before_anything_changes() {
    let Some(testbed) = Testbed::up("never-good", &[]) else {
        return;
    };
    let token = testbed.folder().join("own-token");
    let as_printed = testbed.client(&["scontrol", "token", "username=slurm"]);
    assert!(as_printed.starts_with("SLURM_JWT="), "{as_printed}");
    for bad in [expired(&testbed), "no.token.at-all".to_owned(), as_printed] {
        std::fs::write(&token, bad).unwrap();
        let rig = Rig::load_with(&testbed, &token, &[]).await;
        let begun = Instant::now();
        let words = "Slurm rejects the token (its file holds the token alone, without `SLURM_JWT=`): ";
        rig.fails(HookPhase::BeforeCordon, true, words).await;
        // The undo does not wait for it either.
        rig.fails(HookPhase::OnCancel, true, words).await;
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert!(testbed.node().starts_with("idle"), "{}", testbed.node());
    }
}

#[tokio::test]
async fn a_drain_waits_for_a_new_token_after_one_became_invalid() {
    let Some(testbed) = Testbed::up("expired", &[]) else {
        return;
    };
    let token = testbed.folder().join("own-token");
    let good = testbed.token("slurm", 600);
    let bad = expired(&testbed);
    std::fs::write(&token, &good).unwrap();
    let rig = Rig::load_with(&testbed, &token, &[("token-timeout", "3s")]).await;
    let job = testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    rig.waits().await;
    std::fs::write(&token, &bad).unwrap();
    let waits = rig.waits().await;
    assert!(waits.progress.starts_with("Slurm rejects the token"), "{waits:?}");
    std::fs::write(&token, &good).unwrap();
    assert_eq!(rig.waits().await.waiting_for[0].what, format!("job {job}"));
    // Not for longer than the operator allows.
    std::fs::write(&token, &bad).unwrap();
    rig.waits().await;
    until("the time is over", async || {
        matches!(
            rig.step(HookPhase::BeforeDrain).await,
            StepOutcome::Failed { retry_after: None, message } if message.contains("within 3s")
        )
    })
    .await;
}

#[tokio::test]
async fn a_token_without_the_right_ends_the_drain_before_anything_changes() {
    let Some(testbed) = Testbed::up("plain", &[]) else {
        return;
    };
    let token = testbed.folder().join("own-token");
    std::fs::write(&token, testbed.token("alice", 600)).unwrap();
    let rig = Rig::load_with(&testbed, &token, &[]).await;
    let words = "the token's user may not change nodes; only Slurm's operators may: Invalid user id";
    rig.fails(HookPhase::BeforeCordon, true, words).await;
    assert!(testbed.node().starts_with("idle"), "{}", testbed.node());
}

#[tokio::test]
async fn naive_07_slurm_of_debian_12_is_named_as_too_old() {
    let Some(testbed) = Testbed::up("old", &["--suite", "bookworm"]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[("user", "slurm")]).await;
    let words = "slurmrestd serves v0.0.38 at most, which cannot drain a node: Slurm 23.02 or later can";
    rig.fails(HookPhase::BeforeCordon, true, words).await;
    assert!(testbed.node().starts_with("idle"), "{}", testbed.node());
}

#[tokio::test]
async fn trap_03_a_node_whose_slurmd_died_does_not_count_as_idle() {
    let Some(testbed) = Testbed::up("dead", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(600, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    testbed.daemon(&format!("slurmd-{NODE}"), "kill");
    // First it does not respond, then it is down, and its job is requeued while its process continues.
    until("its job is requeued", async || {
        assert_ne!(rig.step(HookPhase::BeforeDrain).await, StepOutcome::Done);
        testbed.job(job) == "PENDING"
    })
    .await;
    until("it is known to be silent, and nothing else", async || {
        let waits = rig.waits().await;
        waits.waiting_for[0]
            .detail
            .starts_with("does not respond: its jobs may still run")
    })
    .await;
    testbed.daemon(&format!("slurmd-{NODE}"), "start");
    rig.done(HookPhase::BeforeDrain).await;
}
