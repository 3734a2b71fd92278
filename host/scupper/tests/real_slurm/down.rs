//! Nodes that are down when the drain begins, and that may come back by themselves in the middle of it.

use scupper_engine::HookPhase;

use crate::rig::{OURS, Rig};
use crate::testbed::{NODE, Testbed, until};

fn set_down(testbed: &Testbed) {
    let name = format!("NodeName={NODE}");
    testbed.client(&["scontrol", "update", &name, "State=DOWN", "Reason=bad disk"]);
}

#[tokio::test]
async fn a_node_that_returns_in_the_middle_of_a_drain_gets_no_jobs() {
    let Some(testbed) = Testbed::up("returns", &["--return-to-service", "2"]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[]).await;
    let slurmd = format!("slurmd-{NODE}");
    testbed.daemon(&slurmd, "stop");
    set_down(&testbed);
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
    testbed.daemon(&slurmd, "start");
    until("the node has returned", async || {
        let state = testbed.client(&["scontrol", "show", "node", NODE]);
        assert_eq!(testbed.job(job), "PENDING", "{state}");
        state.contains("State=IDLE+DRAIN ")
    })
    .await;
    assert_eq!(testbed.node(), format!("drained {OURS}; was down: bad disk"));
    rig.done(HookPhase::BeforeDrain).await;
    rig.another("uncordon-uid");
    rig.done(HookPhase::AfterUncordon).await;
    until("the job runs", async || testbed.job(job) == "COMPLETED").await;
}

#[tokio::test]
async fn a_node_that_stays_down_gets_its_reason_back() {
    let Some(testbed) = Testbed::up("stays-down", &[]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[]).await;
    set_down(&testbed);
    rig.done(HookPhase::BeforeCordon).await;
    rig.done(HookPhase::BeforeDrain).await;
    rig.another("uncordon-uid");
    rig.done(HookPhase::AfterUncordon).await;
    // Slurm reports it as not responding until it has answered once more.
    until("it is down as before", async || testbed.node() == "down bad disk").await;
}

#[tokio::test]
async fn a_silent_node_that_was_drained_comes_back_after_the_uncordon() {
    let Some(testbed) = Testbed::up("silent", &["--slurmd-timeout", "4"]) else {
        return;
    };
    let mut rig = Rig::load(&testbed, &[]).await;
    testbed.daemon(&format!("slurmd-{NODE}"), "kill");
    until("the node is down", async || testbed.node().starts_with("down")).await;
    rig.done(HookPhase::BeforeCordon).await;
    testbed.daemon(&format!("slurmd-{NODE}"), "start");
    rig.done(HookPhase::BeforeDrain).await;
    rig.another("uncordon-uid");
    rig.done(HookPhase::AfterUncordon).await;
    until("the node is back", async || testbed.node().starts_with("idle ")).await;
}
