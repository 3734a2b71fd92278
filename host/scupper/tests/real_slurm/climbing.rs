//! The deadline ladder on real jobs.

use std::time::{Duration, Instant};

use scupper_engine::HookPhase;

use crate::rig::Rig;
use crate::testbed::{NODE, Testbed, until};

/// A job whose script and whose step each record their signals.
const LISTENER: &str = "#!/bin/sh
trap 'echo script >>/testbed/log/heard' USR1
srun --overlap sh -c 'trap \"echo step >>/testbed/log/heard\" USR1; touch /testbed/log/ready; while :; do sleep 0.1; done' &
while :; do sleep 0.1; done
";

/// The jobs may write there.
pub(crate) fn open_log(testbed: &Testbed) {
    use std::os::unix::fs::PermissionsExt;
    let log = testbed.folder().join("log");
    std::fs::set_permissions(log, std::fs::Permissions::from_mode(0o777)).unwrap();
}

#[tokio::test]
async fn jobs_get_a_signal_and_are_cancelled_before_the_deadline() {
    let Some(testbed) = Testbed::up("ladder", &[]) else {
        return;
    };
    open_log(&testbed);
    std::fs::write(testbed.folder().join("listener"), LISTENER).unwrap();
    let mut rig = Rig::load(&testbed, &[("ladder", "60s signal USR1, 56s cancel")]).await;
    let ask = [
        "sbatch",
        "--parsable",
        "--chdir=/tmp",
        "--output=/dev/null",
        "-w",
        NODE,
        "/testbed/listener",
    ];
    let job: u64 = testbed.client(&ask).parse().unwrap();
    until("the job listens", async || {
        testbed.folder().join("log/ready").exists()
    })
    .await;
    rig.done(HookPhase::BeforeCordon).await;
    rig.deadline_in(Duration::from_secs(62));
    rig.waits().await;
    assert_eq!(testbed.log("heard"), "", "it is not due");
    until("script and step have heard it", async || {
        rig.step(HookPhase::BeforeDrain).await;
        let heard = testbed.log("heard");
        heard.contains("script") && heard.contains("step")
    })
    .await;
    assert_eq!(testbed.job(job), "RUNNING");
    rig.done(HookPhase::BeforeDrain).await;
    assert_eq!(testbed.job(job), "CANCELLED");
    assert_eq!(testbed.log("heard").lines().count(), 2, "each once");
}

#[tokio::test]
async fn a_node_set_down_by_the_ladder_is_restored_completely() {
    let Some(testbed) = Testbed::up("down", &[]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[("ladder", "45s requeue, 44s down")]).await;
    let job = testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    rig.deadline_in(Duration::from_secs(45));
    // This Slurm cannot requeue a job by REST; the policy reports that and continues with the next rung.
    let waits = rig.waits().await;
    assert!(
        waits
            .progress
            .starts_with("this Slurm cannot requeue a job; 1 job"),
        "{waits:?}"
    );
    assert_eq!(testbed.job(job), "RUNNING");
    rig.done(HookPhase::BeforeDrain).await;
    assert!(
        testbed.node().contains("drain=drain-uid down: maintenance"),
        "{}",
        testbed.node()
    );
    assert_eq!(testbed.job(job), "PENDING", "requeued");
    rig.done(HookPhase::OnCancel).await;
    until("the job runs again", async || testbed.job(job) == "RUNNING").await;
}

#[tokio::test]
async fn trap_10_a_token_that_lost_its_permission_cancels_nothing_and_blocks_nothing() {
    let Some(testbed) = Testbed::up("rights", &[]) else {
        return;
    };
    let token = testbed.folder().join("own-token");
    std::fs::write(&token, testbed.token("slurm", 600)).unwrap();
    let mut rig = Rig::load_with(&testbed, &token, &[("ladder", "60s cancel")]).await;
    let job = testbed.submit(300, &["--user", "bob"]);
    rig.done(HookPhase::BeforeCordon).await;
    rig.waits().await;
    std::fs::write(&token, testbed.token("alice", 600)).unwrap();
    rig.deadline_in(Duration::from_secs(50));
    for _ in 0..2 {
        let waits = rig.waits().await;
        assert!(waits.progress.contains("only Slurm's operators may"), "{waits:?}");
    }
    assert_eq!(testbed.job(job), "RUNNING", "and the controller still answers");
    std::fs::write(&token, testbed.token("slurm", 600)).unwrap();
    rig.done(HookPhase::BeforeDrain).await;
    assert_eq!(testbed.job(job), "CANCELLED");
}

#[tokio::test]
async fn on_a_node_drained_by_another_user_no_rung_is_climbed() {
    let Some(testbed) = Testbed::up("foreign-ladder", &[]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[("ladder", "50s cancel")]).await;
    let job = testbed.submit(300, &[]);
    testbed.client(&[
        "scontrol",
        "update",
        &format!("NodeName={NODE}"),
        "State=DRAIN",
        "Reason=bad disk",
    ]);
    rig.deadline_in(Duration::from_secs(50));
    let waits = rig.waits().await;
    assert!(
        waits.progress.starts_with("the ladder is not climbed"),
        "{waits:?}"
    );
    assert_eq!(
        (testbed.job(job).as_str(), testbed.node().as_str()),
        ("RUNNING", "draining bad disk")
    );
}

const LONG: (&str, &str) = ("ladder", "15m signal CONT, 5m signal CONT, 1m cancel");

#[tokio::test]
async fn a_ladder_that_is_longer_than_the_drain_refuses_it_before_anything_changes() {
    let Some(testbed) = Testbed::up("too-long", &[]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[LONG]).await;
    let job = testbed.submit(300, &[]);
    rig.deadline_in(Duration::from_secs(30));
    let words = "the ladder begins 15m before the deadline, and this drain has 30s";
    rig.fails(HookPhase::BeforeCordon, true, words).await;
    assert!(!testbed.node().contains("drain"), "{}", testbed.node());
    assert_eq!(testbed.job(job), "RUNNING");
}

#[tokio::test]
async fn a_scaled_ladder_leaves_jobs_their_share_of_the_time() {
    let Some(testbed) = Testbed::up("scaled", &[]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[LONG, ("ladder-too-long", "scale")]).await;
    let job = testbed.submit(300, &[]);
    let begun = Instant::now();
    rig.deadline_in(Duration::from_secs(30));
    rig.done(HookPhase::BeforeCordon).await;
    until("the job is cancelled", async || {
        rig.step(HookPhase::BeforeDrain).await;
        // Between the two: while Slurm delivers a signal.
        !matches!(&*testbed.job(job), "RUNNING" | "SIGNALING")
    })
    .await;
    // One minute of fifteen is two seconds of thirty.
    assert!(begun.elapsed() > Duration::from_secs(27), "{:?}", begun.elapsed());
    rig.done(HookPhase::BeforeDrain).await;
    assert_eq!(testbed.job(job), "CANCELLED");
}
