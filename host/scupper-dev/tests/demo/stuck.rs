//! The output of `make demo-stuck`: does it tell an engineer at night what to do?

use crate::{built, narrated, play};

#[test]
fn three_stuck_drains_name_what_blocks_each_pod_and_the_next_command() {
    let policy = built(&["slurm"]);
    let text = play(&["--stuck", "--slurm", policy.to_str().unwrap()]);
    let (before, rest) = text
        .split_once("$ kubectl create -f drain-worker-1.yaml")
        .unwrap();
    planned(before);
    let (rest, status) = rest.split_once("$ scupper status worker-1 worker-2\n").unwrap();
    let (_, overview) = rest.split_once("$ scupper status\n").unwrap();
    line(
        overview,
        "worker-1",
        &["draining", "3 BudgetExhausted, 1 TerminatingPastGrace"],
    );
    line(
        overview,
        "worker-2",
        &["draining", "policy slurm waits", "1 HookRunning"],
    );
    let (status, after) = status.split_once("\nWhat ends the three waits").unwrap();
    let (one, two) = status.split_once("node worker-2: ").unwrap();
    // The budget: its name, its needed and current healthy pods, the pods it blocks in one line, and the command that opens
    // it.
    facts(
        one,
        "budget shop/cart blocks 3 pods",
        &["it needs 3 healthy pods and has 3"],
        "kubectl -n shop scale replicaset cart --replicas 4",
    );
    line(
        one,
        "shop/cart-1 and 2 more",
        &["BudgetExhausted", "for ", "(ReplicaSet cart, 3 of 3 ready)"],
    );
    // The finalizer: its name, and since when it blocks.
    facts(
        one,
        "reports/monthly-1",
        &[
            "TerminatingPastGrace",
            "still terminating ",
            "s after its grace period; finalizers: reports.example.com/archive",
        ],
        "kubectl -n reports describe pod monthly-1",
    );
    // The hook: its policy, its blocker, since when, and how to give up.
    facts(
        two,
        "hook       slurm before-drain, running for ",
        &["0 of 1 Slurm nodes drained; squeue --nodelist gpu-0 lists their jobs"],
        "next: scupper cancel worker-2    # if the drain should not wait for that",
    );
    assert!(
        two.contains("waits for slurm/gpu-0: allocated: jobs still run, for "),
        "{two}"
    );
    assert!(
        two.contains("the before-drain hook of policy slurm is running"),
        "{two}"
    );
    for reported in [one, two] {
        assert!(reported.contains("driver     status from "), "{reported}");
    }
    assert_eq!(after.matches("Drained in ").count(), 2, "{after}");
    narrated("demo-stuck", &text.replace(overview, "").replace(status, ""));
}

/// Whether the node would become empty is said before anything changes, with the smallest change that helps.
#[track_caller]
fn planned(before: &str) {
    let (_, plan) = before.split_once("$ scupper plan worker-1\n").unwrap();
    line(
        plan,
        "A drain of node worker-1",
        &["could not end; nothing was changed"],
    );
    line(
        plan,
        "evict ",
        &["reports/monthly-1", "managed by ReplicaSet monthly"],
    );
    line(plan, "shop/cart-1 and 2 more", &["managed by ReplicaSet cart"]);
    facts(
        plan,
        "certain ",
        &["budget shop/cart (minAvailable: 3) blocks its pods even when all are healthy"],
        "change: minAvailable: 3 -> 2, or replicas of ReplicaSet cart: 3 -> 4",
    );
}

/// One line has all the facts, and one of the next few has the command.
#[track_caller]
fn facts(status: &str, of: &str, facts: &[&str], next: &str) {
    let at = line(status, of, facts);
    let reported = status.lines().skip(at).take(4).any(|line| line.contains(next));
    assert!(reported, "{next} is not what to type next in\n{status}");
}

/// The number of the line that has all the facts.
#[track_caller]
fn line(status: &str, of: &str, facts: &[&str]) -> usize {
    let mut lines = status.lines().enumerate();
    let found = lines.find(|(_, line)| line.contains(of));
    let (at, line) = found.unwrap_or_else(|| panic!("{of} is missing in\n{status}"));
    for fact in facts {
        assert!(line.contains(fact), "{fact} is missing in {line}");
    }
    at
}
