//! The ladder reaches the jobs of the drained node alone: not their arrays, and not the other parts of heterogeneous jobs.

use std::time::Duration;

use scupper_engine::HookPhase;

use serde_json::json;

use crate::climbing::open_log;
use crate::driver::{WORKER, node, policies};
use crate::rig::Rig;
use crate::testbed::{NODE, Testbed, until};

const CANCELLED: &str = "1 job cancelled";
const LADDER: (&str, &str) = ("ladder", "60s signal CONT, 56s cancel");

/// Signals the task's script, and ends it four seconds later.
const SIGNALS: (&str, &str) = ("ladder", "60s signal USR1, 56s cancel");

/// A task notes on which node its script has heard a signal.
const TASK: &str = "--wrap=trap 'echo $SLURMD_NODENAME >>/testbed/log/heard' USR1; \
                    touch /testbed/log/ready-$SLURM_ARRAY_TASK_ID; while :; do sleep 0.1; done";

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

/// Drains this node with a ladder that ends now, until this is said and, if that is the end of the jobs, it has none.
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
    if until_said == CANCELLED {
        rig.done(HookPhase::BeforeDrain).await;
    }
    said
}

/// An array with a task on each of four nodes, and the node of the task that has the array's number: the last to start.
async fn array(testbed: &Testbed) -> (Vec<(u64, String)>, String) {
    open_log(testbed);
    let array = submit(testbed, &["--array=0-3", TASK]);
    let tasks = running(testbed, 4).await;
    until("the tasks listen", async || {
        let ready = |task| testbed.folder().join(format!("log/ready-{task}")).exists();
        (0..4).all(ready)
    })
    .await;
    let (_, last) = tasks.iter().find(|(number, _)| *number == array).unwrap();
    let last = last.clone();
    (tasks, last)
}

/// The task on this node comes into this state, and all others run. One that is requeued completes first.
async fn only_there(testbed: &Testbed, tasks: &[(u64, String)], there: &str, state: &str) {
    let shown = |number: u64| {
        let shown = testbed.client(&["scontrol", "show", "job", &number.to_string()]);
        let own = shown
            .split("\n\n")
            .find(|job| job.starts_with(&format!("JobId={number} ")));
        own.unwrap().to_owned()
    };
    for (number, _) in tasks.iter().filter(|(_, node)| node == there) {
        until(state, async || {
            shown(*number).contains(&format!("JobState={state} "))
        })
        .await;
    }
    for (number, node) in tasks.iter().filter(|(_, node)| node != there) {
        let own = shown(*number);
        let runs = own.contains("JobState=RUNNING ") && own.contains(" Restarts=0 ");
        assert!(runs, "{number} on {node}: {own}");
    }
}

#[tokio::test]
async fn a_task_is_ended_and_its_array_is_not() {
    let Some(testbed) = Testbed::up("array", &["--nodes", "4"]) else {
        return;
    };
    let (tasks, last) = array(&testbed).await;
    climb(&testbed, &last, &[SIGNALS], CANCELLED).await;
    only_there(&testbed, &tasks, &last, "CANCELLED").await;
    assert_eq!(testbed.log("heard"), format!("{last}\n"));
}

#[tokio::test]
async fn a_task_is_requeued_and_its_array_is_not() {
    let Some(testbed) = Testbed::up("requeue", &["--nodes", "4", "--suite", "forky"]) else {
        return;
    };
    let (tasks, last) = array(&testbed).await;
    let said = climb(&testbed, &last, &[("ladder", "60s requeue")], "1 job requeued").await;
    only_there(&testbed, &tasks, &last, "PENDING").await;
    assert!(
        said.iter()
            .any(|said| said.starts_with("1 job requeued; 1 job on ")),
        "{said:?}"
    );
}

#[tokio::test]
async fn in_driver_mode_a_task_is_ended_and_its_array_is_not() {
    let Some(testbed) = Testbed::up("array-driver", &["--nodes", "4"]) else {
        return;
    };
    let (tasks, last) = array(&testbed).await;
    let table = format!("worker-1={last}");
    let config = [
        ("slurm-node-table", table.as_str()),
        ("ladder", "25s signal USR1, 20s cancel"),
    ];
    let mut driver = node(&testbed, &config, json!({"sla": "35s"}), Vec::new()).await;
    driver.start().await;
    assert_eq!(driver.drain("drain").await, "Succeeded", "{}", driver.reported());
    only_there(&testbed, &tasks, &last, "CANCELLED").await;
    assert_eq!(testbed.log("heard"), format!("{last}\n"));
    let said = format!("1 job cancelled ({last})");
    let events = driver.events("SlurmJobsCancelled");
    assert!(events.len() == 1 && events[0].ends_with(&said), "{events:?}");
}

/// A rung requeues the task; after the uncordon it runs there again, and is requeued again.
#[tokio::test]
async fn in_driver_mode_a_task_that_was_requeued_is_requeued_without_its_array() {
    let Some(testbed) = Testbed::up("requeue-driver", &["--nodes", "4", "--suite", "forky"]) else {
        return;
    };
    let (tasks, last) = array(&testbed).await;
    let task = testbed.client(&["squeue", "-h", "-w", &last, "-o", "%i"]);
    let table = format!("worker-1={last}");
    let config = [("slurm-node-table", table.as_str()), ("ladder", "20s requeue")];
    let mut driver = node(&testbed, &config, json!({"sla": "35s"}), Vec::new()).await;
    driver.start().await;
    for round in ["first", "second"] {
        assert_eq!(driver.drain(round).await, "Succeeded", "{}", driver.reported());
        only_there(&testbed, &tasks, &last, "PENDING").await;
        let uncordon = driver.uncordon(&format!("after-{round}")).await;
        assert_eq!(uncordon, "Succeeded", "{}", driver.reported());
        testbed.start_now(&task);
        running(&testbed, 4).await;
        only_there(&testbed, &tasks, &last, "RUNNING").await;
    }
    let events = driver.events("SlurmJobsRequeued");
    let said = format!("1 job requeued ({last})");
    assert!(
        events.len() == 2 && events.iter().all(|event| event.ends_with(&said)),
        "{events:?}"
    );
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
        let table = format!("worker-1={node}");
        let config = [LADDER, ("slurm-node-table", table.as_str())];
        let found = Rig::load(&testbed, &config).await.check().await;
        let named = format!(
            "warning ladder: job {job}+{part} on {node} is a part of heterogeneous job {job}, which also runs on {other}: no \
             rung touches it (`heterogeneous: wait`)"
        );
        assert!(found.contains(&named), "{found:#?}");
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
        CANCELLED,
    )
    .await;
    let words = format!(
        "job {job}+0 is a part of heterogeneous job {job}, which also runs on slurm-worker-1: its other parts are reached as well"
    );
    assert!(said.iter().any(|said| said.contains(&words)), "{said:?}");
    until("both parts have ended", async || testbed.jobs() == 0).await;
}

#[tokio::test]
async fn a_later_part_of_a_heterogeneous_job_ends_alone() {
    let Some(testbed) = Testbed::up("het-later", &[]) else {
        return;
    };
    let job = heterogeneous(&testbed).await;
    let choice = [("heterogeneous", "ladder")];
    let said = climb(&testbed, "slurm-worker-1", &choice, CANCELLED).await;
    let words = format!("which also runs on {NODE}: its other parts are not reached");
    assert!(said.iter().any(|said| said.contains(&words)), "{said:?}");
    let left = running(&testbed, 1).await;
    assert_eq!(left, [(job, NODE.to_owned())]);
}

/// By default it is left alone; if configured, the first part ends all. Each time people read on which other node it runs.
#[tokio::test]
async fn in_driver_mode_a_heterogeneous_job_is_treated_as_configured_and_its_other_node_is_named() {
    let Some(testbed) = Testbed::up("het-driver", &[]) else {
        return;
    };
    let job = heterogeneous(&testbed).await;
    let part = format!("job {job}+0 is a part of heterogeneous job {job}, which also runs on slurm-worker-1");
    let ladder = ("ladder", "20s cancel");
    let sla = json!({"sla": "35s"});
    let mut driver = node(&testbed, &[ladder], sla.clone(), Vec::new()).await;
    driver.start().await;
    driver.begin_drain("waits");
    let left = format!(
        "no job to cancel; job {job}+0, a part of heterogeneous job {job}, which also runs on slurm-worker-1, is left alone"
    );
    let waits = format!("waits for job {job}+0: ");
    let names = |line: &str| line.contains(&waits) && line.contains(", which also runs on slurm-worker-1");
    driver
        .until("it is left alone", || {
            let reported = driver.reported();
            reported.contains(&left) && reported.lines().any(names)
        })
        .await;
    let events = || driver.events("SlurmRungMissed");
    driver
        .until("an Event says so", || {
            events().len() == 1 && events()[0].contains(&left)
        })
        .await;
    driver.cancel("waits").await;
    assert_eq!(running(&testbed, 2).await.len(), 2);

    driver.kill();
    driver.configure(sla, policies(&testbed, &[ladder, ("heterogeneous", "ladder")]));
    let found = format!(
        "job {job}+0 on {NODE} is a part of heterogeneous job {job}, which also runs on slurm-worker-1"
    );
    let doctor = driver.types(&["doctor", "--node", WORKER]).ended().await;
    assert!(doctor.stdout.contains(&found), "{doctor:?}");
    // So does a plan, before anything has begun.
    let plan = driver.types(&["plan", WORKER]).ended().await;
    assert!(
        plan.stdout.contains(&format!("policy slurm: ladder: {found}")),
        "{plan:?}"
    );
    driver.start().await;
    assert_eq!(driver.drain("ends").await, "Succeeded", "{}", driver.reported());
    until("both parts have ended", async || testbed.jobs() == 0).await;
    let ended = format!("1 job cancelled; {part}: its other parts are reached as well");
    assert!(driver.reported().contains(&ended), "{}", driver.reported());
    let events = || driver.events("SlurmJobsCancelled");
    driver
        .until("an Event says so", || {
            events().len() == 1 && events()[0].contains(&ended)
        })
        .await;
}
