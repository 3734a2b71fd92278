//! The API server is killed and restarted while a drain with hooks is under way. A server that has just started may
//! answer 401 or 403, as it has not read its roles yet: that ends no drain.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::self_claim::{Claimer, DRIVER, LIMIT, OFFICIAL};
use super::setup::Account;
use super::testbed::Testbed;
use super::{ALONE, node, pods_on, skip};
use xtask::policies;
use xtask::workspace::Workspace;

const NODE: &str = "node-1";
/// Before the hook has ended, and again after it.
const RESTARTS: usize = 5;

/// How long one API server must refuse a read that a drain can do without before that counts.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// Returns when the new one was started.
fn restart(testbed: &Testbed) -> Timestamp {
    testbed.run(&["daemon"], &["kube-apiserver", "kill"]);
    let started = Timestamp::now();
    testbed.run(&["daemon"], &["kube-apiserver", "start"]);
    started
}

/// When the log says that such a read is refused for good.
fn given_up(log: &str) -> impl Iterator<Item = Timestamp> {
    let words = ["treating them as empty", "taking them for existing"];
    let lines = log
        .lines()
        .filter(move |line| words.iter().any(|words| line.contains(words)));
    lines.map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
}

/// A Slurm node whose job is running or has ended.
fn jobs(testbed: &Testbed, run: bool) {
    let state = |name: &str, status: bool| {
        let status = if status { "True" } else { "False" };
        format!(r#"{{"type": "SlurmNodeState{name}", "status": "{status}"}}"#)
    };
    let states = [state("Drain", true), state("Allocated", run), state("Idle", !run)].join(", ");
    let patch = format!(r#"{{"status": {{"conditions": [{states}]}}}}"#);
    let slurmd = "pod/slurm-0";
    testbed.kubectl(&["patch", "--subresource=status", slurmd, "-p", &patch]);
}

fn until(claimer: &mut Claimer, what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            claimer.is_running() && begun.elapsed() < LIMIT,
            "{what}:\n{}",
            claimer.log()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_drain_with_hooks_bears_an_api_server_that_is_restarted_ten_times() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let built = policies::build(&Workspace::read().unwrap(), &["slurm".to_owned()], None).unwrap();
    let policy = format!("slurm={}", built[0].file.display());
    let testbed = Testbed::up();
    testbed.pods(NODE, 20, 20);
    let labels = "app.kubernetes.io/component=worker,app.kubernetes.io/name=slurmd";
    testbed.make_pods(&["--node", NODE, "--name", "slurm", "--labels", labels]);
    jobs(&testbed, true);
    let more = [
        "--sla",
        "0",
        "--policy",
        &policy,
        "--grant",
        "slurm=node-annotations:nodeset.slinky.slurm.net/",
        "--policy-config",
        "slurm.poll-seconds=1",
    ];
    let account = Account::of_namespace(&testbed, "scupper");
    let mut claimer = Claimer::start(DRIVER, NODE, &account.kubeconfig, &more);
    claimer.publishes(&testbed);
    let event = claimer.asks(&testbed, OFFICIAL, DRIVER);
    let is_cordoned = || node(&testbed, NODE)["spec"]["unschedulable"] == true;
    until(&mut claimer, "the hook waits behind the cordon", is_cordoned);
    let mut starts: Vec<_> = (0..RESTARTS).map(|_| restart(&testbed)).collect();
    assert!(
        pods_on(&testbed, NODE) >= 21,
        "no pod leaves before the job has ended"
    );
    jobs(&testbed, false);
    starts.extend((0..RESTARTS).map(|_| restart(&testbed)));
    let status = claimer.ended(&testbed, OFFICIAL, &event);
    assert_eq!(status, "Succeeded", "{}", claimer.log());
    // Written beside the event's end; each write is tried again after a restart, in its own time.
    let is_drained = || {
        let node = node(&testbed, NODE);
        let mut conditions = node["status"]["conditions"].as_array().unwrap().iter();
        conditions.any(|condition| condition["type"] == "Drained" && condition["status"] == "True")
    };
    until(&mut claimer, "the node's conditions", is_drained);
    let log = claimer.log();
    assert!(!log.contains("this LifecycleEvent fails"), "{log}");
    // Nor does a read that a drain can do without count as refused before one API server has refused it for long. On a busy
    // machine it takes longer than that to read its roles.
    for at in given_up(&log) {
        let last = starts.iter().rfind(|start| **start <= at).unwrap();
        assert!(at.duration_since(*last) >= PATIENCE, "{log}");
    }
}
