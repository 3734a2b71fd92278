//! The owner of the drain in Slurm.

use std::time::Duration;

use scupper_engine::HookPhase;

use crate::rig::{OURS, Rig};
use crate::testbed::{NODE, Testbed, until};

fn drain(testbed: &Testbed, reason: &str) {
    let (name, reason) = (format!("NodeName={NODE}"), format!("Reason={reason}"));
    testbed.client(&["scontrol", "update", &name, "State=DRAIN", &reason]);
}

#[tokio::test]
async fn a_foreign_drain_and_its_reason_survive_untouched() {
    let Some(testbed) = Testbed::up("foreign", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    let changed = ["scontrol", "-d", "show", "node", NODE];
    let job = testbed.submit(300, &[]);
    drain(&testbed, "bad disk");
    let reason = |text: String| {
        let line = text.lines().find(|line| line.contains("Reason=")).map(str::trim);
        line.unwrap().to_owned()
    };
    let before = reason(testbed.client(&changed));
    assert!(before.starts_with("Reason=bad disk [root@"), "{before}");
    rig.done(HookPhase::BeforeCordon).await;
    rig.waits().await;
    testbed.client(&["scancel", &job.to_string()]);
    rig.done(HookPhase::BeforeDrain).await;
    for phase in [
        HookPhase::OnCancel,
        HookPhase::BeforeUncordon,
        HookPhase::AfterUncordon,
    ] {
        rig.done(phase).await;
    }
    // The same text, by the same user, at the same time.
    assert_eq!(reason(testbed.client(&changed)), before);
    assert_eq!(testbed.node(), "drained bad disk");
}

#[tokio::test]
async fn an_operator_who_takes_the_drain_over_keeps_it() {
    let Some(testbed) = Testbed::up("takeover", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    rig.done(HookPhase::BeforeCordon).await;
    drain(&testbed, "bad disk");
    rig.done(HookPhase::BeforeDrain).await;
    rig.done(HookPhase::OnCancel).await;
    assert_eq!(testbed.node(), "drained bad disk");
}

#[tokio::test]
async fn a_cancel_resumes_the_node_without_an_effect_on_its_job() {
    let Some(testbed) = Testbed::up("cancel", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    rig.waits().await;
    assert_eq!(testbed.node(), format!("draining {OURS}"));
    rig.done(HookPhase::OnCancel).await;
    assert!(testbed.node().starts_with("mixed"), "{}", testbed.node());
    // Once more, as after a crash.
    rig.done(HookPhase::OnCancel).await;
    until("it is mixed and heard of", async || {
        testbed.node().starts_with("mixed ")
    })
    .await;
    assert_eq!(testbed.job(job), "RUNNING");
}

#[tokio::test]
async fn trap_05_a_reason_that_slurm_keeps_does_not_make_the_drain_ours() {
    let Some(testbed) = Testbed::up("kept-reason", &[]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[]).await;
    let job = testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    rig.done(HookPhase::OnCancel).await;
    assert!(testbed.node().ends_with(" Not responding"), "{}", testbed.node());
    // The next drain of this node is a drain of its own, with its own reason.
    rig.another("second-uid");
    rig.done(HookPhase::BeforeCordon).await;
    assert!(
        testbed.node().contains("drain=second-uid: "),
        "{}",
        testbed.node()
    );
    testbed.client(&["scancel", &job.to_string()]);
    rig.done(HookPhase::BeforeDrain).await;
    rig.another("uncordon-uid");
    rig.done(HookPhase::AfterUncordon).await;
    until("it is idle", async || testbed.node().starts_with("idle")).await;
}

#[tokio::test]
async fn an_operators_resume_is_not_overridden() {
    let Some(testbed) = Testbed::up("resumed", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    rig.waits().await;
    let name = format!("NodeName={NODE}");
    testbed.client(&["scontrol", "update", &name, "State=RESUME"]);
    let waits = rig.waits().await;
    assert!(
        waits
            .progress
            .starts_with("an operator resumed slurm-worker-0 in Slurm"),
        "{waits:?}"
    );
    assert!(testbed.node().starts_with("mixed"), "{}", testbed.node());
}

#[tokio::test]
async fn a_job_that_starts_on_a_resumed_node_clears_the_reason_and_the_node_is_not_drained_again() {
    let Some(testbed) = Testbed::up("resumed-busy", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[]).await;
    testbed.submit(300, &[]);
    rig.done(HookPhase::BeforeCordon).await;
    rig.waits().await;
    let name = format!("NodeName={NODE}");
    testbed.client(&["scontrol", "update", &name, "State=RESUME"]);
    testbed.submit(300, &[]);
    assert_eq!(testbed.node(), "mixed none");
    let waits = rig.waits().await;
    assert!(
        waits
            .progress
            .starts_with("an operator resumed slurm-worker-0 in Slurm"),
        "{waits:?}"
    );
    assert_eq!(testbed.node(), "mixed none");
}

#[tokio::test]
async fn a_later_drain_that_gives_no_reason_is_not_taken_for_ours() {
    let Some(testbed) = Testbed::up("inherited", &[]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[]).await;
    rig.done(HookPhase::BeforeCordon).await;
    rig.another("uncordon-uid");
    rig.done(HookPhase::AfterUncordon).await;
    until("it is idle", async || testbed.node().starts_with("idle ")).await;
    testbed.drain_without_a_reason();
    let drained = testbed.node();
    assert!(drained.starts_with("drained "), "{drained}");
    rig.done(HookPhase::AfterUncordon).await;
    assert_eq!(testbed.node(), drained);
}

#[tokio::test]
async fn a_reason_with_an_addition_by_the_controller_is_ours_and_the_node_returns() {
    let Some(testbed) = Testbed::up("appended", &["--slurmd-timeout", "4"]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[]).await;
    rig.done(HookPhase::BeforeCordon).await;
    testbed.daemon(&format!("slurmd-{NODE}"), "kill");
    until("the controller appends to the reason", async || {
        testbed.node().ends_with(" : Not responding")
    })
    .await;
    let show = ["scontrol", "show", "node", NODE];
    assert!(testbed.client(&show).contains("State=DOWN+DRAIN"));
    assert!(
        testbed.node().ends_with(&format!("{OURS} : Not responding")),
        "{}",
        testbed.node()
    );
    rig.another("uncordon-uid");
    // It does not wait for slurmd: its own deadline is too near.
    rig.deadline_in(Duration::from_secs(30));
    rig.done(HookPhase::AfterUncordon).await;
    // With this reason alone it returns by itself, as it would have without us.
    assert!(testbed.node().ends_with(" Not responding"), "{}", testbed.node());
    testbed.daemon(&format!("slurmd-{NODE}"), "start");
    until("the node is back", async || testbed.node().starts_with("idle ")).await;
}
