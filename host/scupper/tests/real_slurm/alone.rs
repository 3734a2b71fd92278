//! The ladder reaches the jobs of the drained node alone: not their arrays, and not the other parts of heterogeneous jobs.

use std::time::Duration;

use scupper_engine::HookPhase;

use crate::rig::Rig;
use crate::testbed::{Testbed, until};

const LADDER: (&str, &str) = ("ladder", "60s signal CONT, 56s cancel");

/// Tasks and parts fill their nodes.
const WHOLE_NODE: [&str; 5] = [
    "--parsable",
    "--chdir=/tmp",
    "--output=/dev/null",
    "--exclusive",
    "-n1",
];

fn submit(testbed: &Testbed, options: &[&str]) -> u64 {
    let ask = [&["sbatch"][..], &WHOLE_NODE, options].concat();
    testbed.client(&ask).parse().unwrap()
}

/// `number node` of each running job.
async fn running(testbed: &Testbed, jobs: usize) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    until("all run", async || {
        let listed = testbed.client(&["squeue", "-h", "-t", "running", "-o", "%A %N"]);
        found = listed
            .lines()
            .map(|line| {
                let (number, node) = line.split_once(' ').unwrap();
                (number.parse().unwrap(), node.to_owned())
            })
            .collect();
        found.len() == jobs
    })
    .await;
    found
}

/// Drains this node with a ladder that ends now, until it has no jobs or, if `waits`, until the last rung is missed.
async fn climb(testbed: &Testbed, node: &str, more: &[(&str, &str)], until_said: &str) -> Vec<String> {
    let table = format!("worker-1={node}");
    let config = [&[LADDER, ("slurm-node-table", table.as_str())], more].concat();
    let mut rig = Rig::load(testbed, &config).await;
    rig.done(HookPhase::BeforeCordon).await;
    rig.deadline_in(Duration::from_secs(60));
    let mut said = Vec::new();
    until(until_said, async || {
        said.push(rig.waits().await.progress);
        said.iter().any(|said| said.contains(until_said))
    })
    .await;
    if more.is_empty() {
        rig.done(HookPhase::BeforeDrain).await;
    }
    said
}

#[tokio::test]
async fn a_task_is_ended_and_its_array_is_not() {
    let Some(testbed) = Testbed::up("array", &["--nodes", "4"]) else {
        return;
    };
    let array = submit(&testbed, &["--array=0-3", "--wrap=sleep 600"]);
    let tasks = running(&testbed, 4).await;
    // The last task to start has the number of the array.
    let (_, last) = tasks.iter().find(|(number, _)| *number == array).unwrap();
    climb(&testbed, last, &[], "1 job cancelled").await;
    for (number, node) in &tasks {
        let ended = node == last;
        let state = testbed.client(&["scontrol", "show", "job", &number.to_string()]);
        let own = state
            .split("\n\n")
            .find(|job| job.starts_with(&format!("JobId={number} ")))
            .unwrap();
        let runs = own.contains("JobState=RUNNING");
        assert_eq!(runs, !ended, "{number} on {node}: {own}");
    }
}

async fn heterogeneous(testbed: &Testbed) -> u64 {
    let job = submit(
        testbed,
        &[
            "-w",
            "slurm-worker-0",
            ":",
            "-n1",
            "-w",
            "slurm-worker-1",
            "--wrap=sleep 600",
        ],
    );
    running(testbed, 2).await;
    job
}

#[tokio::test]
async fn a_heterogeneous_job_is_left_alone() {
    let Some(testbed) = Testbed::up("het-wait", &[]) else {
        return;
    };
    for (node, other, part) in [
        ("slurm-worker-0", "slurm-worker-1", 0),
        ("slurm-worker-1", "slurm-worker-0", 1),
    ] {
        let job = heterogeneous(&testbed).await;
        let wait = [("heterogeneous", "wait")];
        let said = climb(&testbed, node, &wait, "no job to cancel").await;
        let left = format!(
            "no job to cancel; job {job}+{part}, a part of heterogeneous job {job}, which also runs on {other}, is left alone"
        );
        assert!(said.iter().any(|said| said.starts_with(&left)), "{said:?}");
        assert_eq!(running(&testbed, 2).await.len(), 2);
        testbed.client(&["scancel", &job.to_string()]);
        testbed.client(&["scontrol", "update", &format!("NodeName={node}"), "State=RESUME"]);
    }
}

#[tokio::test]
async fn a_heterogeneous_job_is_ended_if_configured_and_its_other_nodes_are_named() {
    let Some(testbed) = Testbed::up("het-ladder", &[]) else {
        return;
    };
    let job = heterogeneous(&testbed).await;
    let said = climb(
        &testbed,
        "slurm-worker-0",
        &[("heterogeneous", "ladder")],
        "1 job cancelled",
    )
    .await;
    let words =
        format!("job {job}+0 is a part of heterogeneous job {job}, which also runs on slurm-worker-1");
    assert!(said.iter().any(|said| said.contains(&words)), "{said:?}");
    until("both parts have ended", async || testbed.jobs() == 0).await;
}
