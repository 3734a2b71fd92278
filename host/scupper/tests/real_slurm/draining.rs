//! Waiting for real jobs.

use std::time::Duration;

use scupper_engine::{HookPhase, StepOutcome};

use crate::rig::{OURS, POLL, Rig};
use crate::testbed::{NODE, Testbed, until};

#[tokio::test]
async fn three_jobs_and_the_drain_ends_within_two_polls_of_the_last() {
    let Some(testbed) = Testbed::up("three", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    let jobs = [("2", "alice"), ("4", "bob"), ("6", "alice")]
        .map(|(seconds, user)| testbed.submit(seconds.parse().unwrap(), &["--user", user, "--name", user]));
    rig.done(HookPhase::BeforeCordon).await;
    assert_eq!(testbed.node(), format!("draining {OURS}"));

    let waits = rig.waits().await;
    let named: Vec<_> = waits.waiting_for.iter().map(|on| on.what.clone()).collect();
    assert!(!named.is_empty() && waits.progress.contains(NODE), "{waits:?}");
    assert!(named.contains(&format!("job {}", jobs[2])), "{named:?}");
    let last = waits
        .waiting_for
        .iter()
        .find(|on| on.what == format!("job {}", jobs[2]))
        .unwrap();
    assert!(
        last.detail
            .starts_with("alice of alice: running, at most until 20"),
        "{last:?}"
    );
    assert!(last.since.is_some());

    let mut polls_after_the_last = 0;
    loop {
        let over = testbed.jobs() == 0;
        polls_after_the_last += u32::from(over);
        if rig.step(HookPhase::BeforeDrain).await == StepOutcome::Done {
            assert!(over || testbed.jobs() == 0, "a job still runs");
            break;
        }
        assert!(polls_after_the_last <= 2, "{polls_after_the_last}");
        tokio::time::sleep(POLL).await;
    }
    assert!(testbed.node().starts_with("drained "), "{}", testbed.node());
    assert_eq!(jobs.map(|job| testbed.job(job)), ["COMPLETED"; 3]);
}

#[tokio::test]
async fn every_version_that_it_serves_drains_and_undrains() {
    let Some(testbed) = Testbed::up("versions", &[]) else {
        return;
    };
    for version in ["v0.0.40", "v0.0.41", "v0.0.42"] {
        let rig = Rig::load(&testbed, &[("api-version", version), ("user", "slurm")]).await;
        testbed.submit(2, &[]);
        rig.done(HookPhase::BeforeCordon).await;
        rig.done(HookPhase::BeforeDrain).await;
        assert!(
            testbed.node().starts_with("drained scupper: node=worker-1 "),
            "{version}"
        );
        rig.done(HookPhase::AfterUncordon).await;
        until("it is idle again", async || testbed.node().starts_with("idle")).await;
    }
    let rig = Rig::load(&testbed, &[("api-version", "v0.0.43")]).await;
    rig.fails(HookPhase::BeforeCordon, true, "does not serve v0.0.43")
        .await;
}

#[tokio::test]
async fn trap_02_a_suspended_job_counts() {
    let Some(testbed) = Testbed::up("suspended", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(300, &["--user", "bob"]);
    testbed.client(&["scontrol", "suspend", &job.to_string()]);
    rig.done(HookPhase::BeforeCordon).await;
    // Slurm's own state for it: nothing runs there.
    assert!(testbed.node().starts_with("drained "), "{}", testbed.node());
    let waits = rig.waits().await;
    assert_eq!(waits.waiting_for[0].detail, "testbed of bob: suspended");
    testbed.client(&["scancel", &job.to_string()]);
    rig.done(HookPhase::BeforeDrain).await;
}

#[tokio::test]
async fn a_job_counts_until_its_epilog_has_finished() {
    let Some(testbed) = Testbed::up("epilog", &["--epilog", "4"]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    testbed.client(&["scancel", &job.to_string()]);
    until("it is completing", async || testbed.job(job) == "COMPLETING").await;
    let waits = rig.waits().await;
    assert!(waits.waiting_for[0].detail.contains("completing"), "{waits:?}");
    rig.done(HookPhase::BeforeDrain).await;
    assert_eq!(testbed.job(job), "CANCELLED");
}

#[tokio::test]
async fn trap_14_a_job_that_waits_for_the_node_is_not_waited_for_and_runs_afterwards() {
    let Some(testbed) = Testbed::up("pending", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    rig.done(HookPhase::BeforeCordon).await;
    let ask = [
        "sbatch",
        "--parsable",
        "--chdir=/tmp",
        "-w",
        NODE,
        "--wrap=sleep 1",
    ];
    let job: u64 = testbed.client(&ask).parse().unwrap();
    rig.done(HookPhase::BeforeDrain).await;
    assert_eq!(testbed.job(job), "PENDING");
    rig.done(HookPhase::AfterUncordon).await;
    until("the job runs", async || testbed.job(job) == "COMPLETED").await;
}

#[tokio::test]
async fn trap_01_a_drain_does_not_hang_on_the_stale_view_of_a_node() {
    let Some(testbed) = Testbed::up("stale", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    testbed.submit(2, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    // A full list that contains the job makes the view of the single node permanently stale.
    rig.waits().await;
    rig.done(HookPhase::BeforeDrain).await;
}

#[tokio::test]
async fn the_name_can_come_from_a_label_and_an_unknown_one_changes_nothing() {
    let Some(testbed) = Testbed::up("names", &[]) else {
        return;
    };
    let table = ("slurm-node-table", "");
    let rig = Rig::load(&testbed, &[table, ("slurm-node", "label:example.com/slurm")]).await;
    rig.done(HookPhase::BeforeCordon).await;
    rig.done(HookPhase::OnCancel).await;
    let rig = Rig::load(&testbed, &[table]).await;
    rig.fails(HookPhase::BeforeCordon, true, "worker-1 is not among its 2")
        .await;
    let rig = Rig::load(&testbed, &[table, ("not-in-slurm", "ignore")]).await;
    rig.done(HookPhase::BeforeCordon).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(testbed.client(&["sinfo", "-h", "-o", "%T"]).starts_with("idle"));
}

#[tokio::test]
async fn a_job_that_is_older_than_the_drain_is_awaited_since_the_drain_began() {
    let Some(testbed) = Testbed::up("older", &[]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(300, &[]);
    until("the job has run for three seconds", async || {
        let ran = testbed.client(&["squeue", "-h", "-j", &job.to_string(), "-o", "%M"]);
        let seconds = ran.rsplit(':').next().unwrap_or_default().parse();
        !ran.starts_with("0:") || seconds.is_ok_and(|seconds: u32| seconds >= 3)
    })
    .await;
    let began = rig.deadline_in(Duration::from_secs(600));
    rig.done(HookPhase::BeforeCordon).await;
    let waits = rig.waits().await;
    assert_eq!(waits.waiting_for[0].since, Some(began), "{waits:?}");
}
