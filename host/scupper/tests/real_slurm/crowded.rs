//! Clusters with many jobs, on this node or on none.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use scupper_engine::{HookPhase, StepOutcome};

use crate::rig::{Rig, spec};
use crate::testbed::{NODE, Testbed, until};

/// This many jobs that wait for this node, each listed on its own: tasks of an array that were changed one by one.
fn crowd(testbed: &Testbed, jobs: usize, node: &str) -> String {
    let (tasks, node) = (format!("--array=0-{}", jobs - 1), format!("--nodelist={node}"));
    let ask = [
        "sbatch",
        "--parsable",
        "--hold",
        "--chdir=/tmp",
        "--output=/dev/null",
        &tasks,
        &node,
        "--wrap=sleep 600",
    ];
    let array = testbed.client(&ask);
    let mut changes = String::new();
    for task in 0..jobs {
        writeln!(changes, "update JobId={array}_{task} Nice=1").unwrap();
    }
    std::fs::write(testbed.folder().join("changes"), changes).unwrap();
    testbed.client(&["bash", "-c", "scontrol </testbed/changes >/dev/null 2>&1"]);
    array
}

/// A node with a running and a suspended job, and then with none.
async fn drains(testbed: &Testbed, rig: &Rig) {
    let running = testbed.submit(600, &["--user", "alice"]);
    let suspended = testbed.submit(600, &["--user", "bob"]);
    testbed.client(&["scontrol", "suspend", &suspended.to_string()]);
    rig.done(HookPhase::BeforeCordon).await;
    let named = || async {
        let waits = rig.waits().await;
        let named = waits.waiting_for.into_iter().map(|on| on.what);
        named.collect::<Vec<_>>()
    };
    let jobs = [running, suspended].map(|job| format!("job {job}"));
    until("it waits for both", async || named().await == jobs).await;
    testbed.client(&["scancel", &running.to_string()]);
    // Slurm's own state of the node is `drained` from here on.
    until("the suspended one alone is waited for", async || {
        assert_ne!(rig.step(HookPhase::BeforeDrain).await, StepOutcome::Done);
        testbed.node().starts_with("drained ") && named().await == jobs[1..]
    })
    .await;
    testbed.client(&["scancel", &suspended.to_string()]);
    rig.done(HookPhase::BeforeDrain).await;
}

#[tokio::test]
async fn a_thousand_pending_jobs_block_no_node() {
    let Some(testbed) = Testbed::up("crowded", &["--max-jobs", "2000"]) else {
        return;
    };
    crowd(&testbed, 1000, NODE);
    let rig = Rig::load(&testbed, &[]).await;
    rig.done(HookPhase::BeforeCordon).await;
    assert_eq!(rig.settle(HookPhase::BeforeDrain).await, StepOutcome::Done);
    rig.done(HookPhase::OnCancel).await;
    until("it is idle again", async || testbed.node().starts_with("idle")).await;
    drains(&testbed, &rig_again(&testbed).await).await;
}

async fn rig_again(testbed: &Testbed) -> Rig {
    let mut rig = Rig::load(testbed, &[]).await;
    rig.another("second-uid");
    rig
}

#[tokio::test]
async fn a_long_array_that_runs_elsewhere_blocks_no_free_node() {
    let Some(testbed) = Testbed::up("array", &["--max-jobs", "2000"]) else {
        return;
    };
    let array = crowd(&testbed, 1000, "slurm-worker-1");
    // The last task has the array's number, and with it come all others, which have ended.
    testbed.client(&["scancel", &format!("{array}_[0-998]")]);
    testbed.client(&["scontrol", "release", &format!("{array}_999")]);
    until("the last task runs", async || {
        testbed.client(&["squeue", "-h", "-t", "running", "-o", "%A"]) == array
    })
    .await;
    let rig = Rig::load(&testbed, &[]).await;
    rig.done(HookPhase::BeforeCordon).await;
    assert_eq!(rig.settle(HookPhase::BeforeDrain).await, StepOutcome::Done);
}

#[tokio::test]
async fn long_fifty_thousand_jobs_with_the_limits_that_the_readme_names() {
    if !crate::long::wanted() {
        return;
    }
    let Some(testbed) = Testbed::up("fifty-thousand", &["--max-jobs", "60000"]) else {
        return;
    };
    crowd(&testbed, 50_000, NODE);
    let mut spec = spec(&testbed.url(), &testbed.token_file(), &[]);
    spec.limits.response_bytes = 16 << 20;
    spec.limits.request_wall = Duration::from_secs(60);
    spec.limits.step_wall = Duration::from_secs(120);
    let rig = Rig::load_spec(spec).await;
    let begun = Instant::now();
    drains(&testbed, &rig).await;
    eprintln!("50,000 jobs: drained after {:?}", begun.elapsed());
}
