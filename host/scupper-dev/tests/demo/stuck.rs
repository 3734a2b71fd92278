//! The output of `make demo-stuck`: does it tell an engineer at night what to do?

use crate::{built, narrated, play};

#[test]
fn three_stuck_drains_name_what_blocks_each_pod_and_the_next_command() {
    let policy = built(&["slurm"]);
    let text = play(&["--stuck", "--slurm", policy.to_str().unwrap()]);
    let (_, status) = text.split_once("$ scupper status worker-1 worker-2\n").unwrap();
    let (status, after) = status.split_once("\nThe three next commands").unwrap();
    let (one, two) = status.split_once("node worker-2: ").unwrap();
    // The budget: its name, its needed and current healthy pods, the pods it blocks, and the command to diagnose it.
    facts(
        one,
        "budget shop/cart blocks 1 pod",
        &["it needs 1 healthy pod and has 1"],
        "kubectl -n shop scale replicaset cart --replicas 2",
    );
    line(
        one,
        "shop/cart-1",
        &["BudgetExhausted", "for ", "(ReplicaSet cart, 1 of 1 ready)"],
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
    narrated("demo-stuck", &text.replace(status, ""));
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
