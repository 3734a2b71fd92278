//! Jobs of several parts and of several nodes: a node is not released while a part of one runs on it.

use scupper_engine::{HookPhase, StepOutcome};

use crate::rig::Rig;
use crate::testbed::{NODE as FIRST, Testbed, until};

/// The drained node: the script of a job runs on the first of its nodes, and this is the second.
const SECOND: &str = "slurm-worker-1";
const TABLE: (&str, &str) = ("slurm-node-table", "worker-1=slurm-worker-1");

fn on(node: &str) -> String {
    format!("--nodelist={node}")
}

/// Submits it, and waits until all of it runs. `parts`: the number of jobs that Slurm has for it.
async fn submit(testbed: &Testbed, options: &[&str], parts: usize) -> u64 {
    let ask = [
        "sbatch",
        "--parsable",
        "--chdir=/tmp",
        "--output=/dev/null",
        "-n1",
    ];
    let job: u64 = testbed.client(&[&ask[..], options].concat()).parse().unwrap();
    until("all of it runs", async || {
        let running = testbed.client(&["squeue", "-h", "-t", "running", "-o", "%i"]);
        running.lines().count() == parts
    })
    .await;
    job
}

/// The policy waits for a job, whatever Slurm's state of the node.
async fn waits_for(rig: &Rig, job: &str) {
    let waits = rig.waits().await;
    let names: Vec<_> = waits.waiting_for.iter().map(|on| on.what.as_str()).collect();
    assert_eq!(names, [format!("job {job}")], "{waits:?}");
}

#[tokio::test]
async fn a_part_of_a_heterogeneous_job_holds_its_node_and_no_other() {
    let Some(testbed) = Testbed::up("heterogeneous", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[TABLE]).await;
    // Its first part is elsewhere; the drained node has the second.
    let (first, second) = (on(FIRST), on(SECOND));
    let job = submit(&testbed, &[&first, ":", "-n1", &second, "--wrap=sleep 600"], 2).await;
    rig.done(HookPhase::BeforeCordon).await;
    waits_for(&rig, &format!("{job}+1")).await;
    // A suspended job is still there, though Slurm calls the node drained.
    testbed.client(&["scontrol", "suspend", &job.to_string()]);
    waits_for(&rig, &format!("{job}+1")).await;
    testbed.client(&["scontrol", "resume", &job.to_string()]);
    testbed.client(&["scancel", &job.to_string()]);
    rig.done(HookPhase::BeforeDrain).await;
}

#[tokio::test]
async fn a_job_of_two_nodes_blocks_both_until_its_epilog_has_finished() {
    let Some(testbed) = Testbed::up("two-nodes", &["--epilog", "3"]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[TABLE]).await;
    // Its script runs on the other node. On the drained one it has an allocation, and no process.
    let job = submit(&testbed, &["--nodes=2", "-n2", "--wrap=sleep 600"], 1).await;
    rig.done(HookPhase::BeforeCordon).await;
    waits_for(&rig, &job.to_string()).await;
    testbed.client(&["scancel", &job.to_string()]);
    let mut completing = false;
    until("it is drained", async || {
        completing |= testbed.job(job) == "COMPLETING";
        rig.step(HookPhase::BeforeDrain).await == StepOutcome::Done
    })
    .await;
    assert!(completing, "no epilog was waited for");
    // The epilog of the other node may end later.
    until("the job has ended", async || testbed.job(job) == "CANCELLED").await;
}

#[tokio::test]
async fn a_job_that_released_a_node_no_longer_blocks_it() {
    let Some(testbed) = Testbed::up("shrunk", &[]) else {
        return;
    };
    let rig = Rig::load(&testbed, &[TABLE]).await;
    let job = submit(&testbed, &["--nodes=2", "-n2", "--wrap=sleep 600"], 1).await;
    rig.done(HookPhase::BeforeCordon).await;
    waits_for(&rig, &job.to_string()).await;
    let (id, left) = (format!("JobId={job}"), format!("NodeList={FIRST}"));
    testbed.client(&["scontrol", "update", &id, &left]);
    rig.done(HookPhase::BeforeDrain).await;
    assert_eq!(testbed.job(job), "RUNNING", "on the other node");
}
