//! What stands in the way of a drain, found before it begins: in `plan`, in `doctor`, in a drain's first lines, and as a
//! reason to refuse it.

use rustix::process::Signal;
use scupper_simulator::api::{Action, Fault, Forbidden, objects};
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, asks};
use crate::rig::Rig;

const CLOSED: &str = "budget shop/keep-web (minAvailable: 1) blocks its pods even when all are healthy";
const UNREAD: &str =
    " (whether that is certain is not known: the workloads of namespace shop could not be read)";
const CHANGE: &str = "minAvailable: 1 -> 0, or replicas of ReplicaSet web: 1 -> 2";

/// The only pod of a settled ReplicaSet, under a budget that wants one.
fn rig() -> Rig {
    let rig = Rig::new();
    rig.apply(objects::namespace("shop"));
    rig.apply(rig.pod("web", "worker-1"));
    // After its pod, or it would create another.
    let set = objects::replica_set("shop", "web", 1).with("/status/replicas", 1);
    rig.apply(set.with("/status/observedGeneration", 1));
    rig.budget("keep-web", "web");
    rig
}

fn drain(rig: &Rig, mode: &str) -> Vec<String> {
    let file = rig.dir.path().join("scupper.yaml");
    let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n";
    std::fs::write(&file, format!("{head}drain:\n  pre-flight: {mode}\n")).unwrap();
    let args = ["drain", "worker-1", "--local", "--config", file.to_str().unwrap()];
    args.map(str::to_owned).to_vec()
}

fn args(drain: &[String]) -> Vec<&str> {
    drain.iter().map(String::as_str).collect()
}

fn namespace_reads(rig: &Rig, mark: usize) -> usize {
    let requests = rig.api.requests_since(mark);
    let reads = requests
        .iter()
        .filter(|it| it.path.starts_with("/apis/apps/v1/namespaces/"));
    reads.count()
}

#[test]
fn a_plan_shows_what_stands_in_its_way_and_the_smallest_change() {
    let rig = rig();
    let run = rig.run(&["plan", "worker-1"]);
    assert_eq!(run.code, Some(5), "a script asks whether it can end: {run:#?}");
    let head = "A drain of node worker-1 would begin like this, and could not end; nothing was changed.\n";
    assert!(run.stdout.starts_with(head), "{}", run.stdout);
    let found = format!("Pre-flight findings:\n  certain  {CLOSED}: shop/web\n           change: {CHANGE}\n");
    assert!(run.stdout.contains(&found), "{}", run.stdout);
    let run = rig.run(&["plan", "worker-1", "--output", "json"]);
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let finding = json!({"certainty": "certain", "concern": "ClosedBudget", "pods": ["shop/web"],
        "budgets": ["shop/keep-web"], "reason": CLOSED, "change": CHANGE});
    assert_eq!(plan["findings"], json!([finding]));
}

/// Pods that only need a flag hide neither the rest of the plan nor its budgets.
#[test]
fn a_plan_that_lacks_flags_shows_what_it_would_do_with_them() {
    let rig = rig();
    // It needs two flags, and names one at a time.
    rig.apply(objects::pod("shop", "bare", "worker-1").empty_dir());
    rig.apply(objects::daemon_set("shop", "agent"));
    rig.apply(objects::pod("shop", "agent-x", "worker-1").daemonset("agent"));
    let run = rig.run(&["plan", "worker-1"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    for words in [
        "  may not leave  shop/bare  Pods with local storage (use --delete-emptydir-data to override)",
        "With --ignore-daemonsets --delete-emptydir-data --force it would begin like this, and could not end:\nwave 1: all",
        &format!("Pre-flight findings:\n  certain  {CLOSED}: shop/web\n"),
    ] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
    let run = rig.run(&["plan", "worker-1", "--ignore-daemonsets", "--output", "json"]);
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        plan["withFlags"]["flags"],
        json!(["--delete-emptydir-data", "--force"])
    );
    assert_eq!(plan["withFlags"]["findings"][0]["certainty"], "certain");
}

#[test]
fn doctor_names_what_stands_in_the_way_of_a_drain_of_the_node() {
    let rig = rig();
    let run = rig.run(&["doctor", "--node", "worker-1"]);
    let note = format!("note  pre-flight    certain: {CLOSED}: shop/web\ndo:                 {CHANGE}");
    assert!(run.stdout.contains(&note), "{}", run.stdout);
    let run = rig.run(&["doctor", "--node", "worker-2"]);
    let fine = "ok    pre-flight    nothing is known that would keep pods on worker-2 in a drain";
    assert!(run.stdout.contains(fine), "{}", run.stdout);
}

#[test]
fn a_drain_that_cannot_end_is_refused_before_anything_changes() {
    let rig = rig();
    let drain = drain(&rig, "refuse");
    let run = rig.run(&args(&drain));
    assert_eq!(run.code, Some(5), "{run:#?}");
    let reason = format!("shop/web: {CLOSED}; change: {CHANGE} [pre-flight check]");
    assert!(
        run.stdout
            .contains(&format!("pods cannot be evicted; nothing has changed: {reason}")),
        "{}",
        run.stdout
    );
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.mark("worker-1"), None);
    assert_eq!(rig.pods(), ["web"]);
    let events = rig.objects("events.events.k8s.io");
    let blocked = events.iter().find(|event| event["reason"] == "Blocked").unwrap();
    assert!(blocked["note"].as_str().unwrap().contains(CLOSED), "{blocked}");
    let mut plan = args(&drain);
    plan[0] = "plan";
    plan.remove(2);
    let plan = rig.run(&plan);
    assert_eq!(plan.code, Some(5), "{plan:#?}");
    assert!(
        plan.stdout.contains("would be refused; nothing was changed"),
        "{plan:#?}"
    );
}

#[test]
fn a_drain_that_may_end_is_not_refused() {
    let rig = rig();
    // A rollout brings a second pod for a while.
    let set = objects::replica_set("shop", "web", 1).with("/status/replicas", 2);
    rig.apply(set.with("/status/observedGeneration", 1));
    let drain = drain(&rig, "refuse");
    let mut drain = rig.start(&args(&drain));
    drain.prints("waits    shop/web");
    drain.prints(&format!("likely   {CLOSED}: shop/web"));
    assert!(rig.is_cordoned("worker-1"));
    drain.signal(Signal::INT);
    drain.ended();
}

/// `plan` and the drain say the same, whether the drain refuses or not.
#[test]
fn by_default_a_drain_says_what_is_certain_and_goes_on() {
    let rig = rig();
    let mark = rig.api.mark();
    let drain = drain(&rig, "warn");
    let mut drain = rig.start(&args(&drain));
    drain.prints("waits    shop/web");
    drain.prints(&format!(
        "certain  will not leave: {CLOSED}: shop/web; change: {CHANGE}"
    ));
    assert!(namespace_reads(&rig, mark) > 0);
    drain.signal(Signal::INT);
    drain.ended();
}

/// Whoever asks a driver reads it as well.
#[test]
fn who_follows_a_drain_reads_what_its_driver_has_found() {
    let rig = rig();
    let _agent = Agent::start(&rig, false);
    let mut drain = rig.start(&asks("drain", &[]));
    drain.prints(&format!(
        "certain  will not leave: {CLOSED}: shop/web; change: {CHANGE}"
    ));
    drain.signal(Signal::INT);
    let run = drain.ended();
    assert_eq!(run.stdout.matches("certain  ").count(), 1, "{run:#?}");
}

/// Without the right to read owners a drain begins all the same, and at once.
#[test]
fn where_namespaces_may_not_be_read_a_finding_is_likely() {
    let rig = rig();
    let fault = Fault::new(Action::Status(403, None)).path("/apis/apps/v1/namespaces/*");
    rig.api.faults([fault]);
    let drain = drain(&rig, "warn");
    let mut drain = rig.start(&args(&drain));
    drain.prints(&format!(
        "likely   {CLOSED}{UNREAD}: shop/web; change: minAvailable: 1 -> 0"
    ));
    drain.signal(Signal::INT);
    drain.ended();
}

/// Many installations leave these rights out on purpose, and an alert counts each refusal.
#[test]
fn a_drain_that_goes_on_reads_nothing_that_it_has_no_right_to_read() {
    for (verb, resource) in [("get", "namespaces"), ("list", "replicasets.apps")] {
        let rig = rig();
        rig.api.set_forbidden(Forbidden {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            ..Forbidden::default()
        });
        let mark = rig.api.mark();
        let drain = drain(&rig, "warn");
        let mut drain = rig.start(&args(&drain));
        drain.prints(&format!(
            "likely   {CLOSED}{UNREAD}: shop/web; change: minAvailable: 1 -> 0"
        ));
        let refused = rig.api.requests_since(mark).into_iter();
        let refused: Vec<_> = refused.filter(|it| it.status == Some(403)).collect();
        assert!(refused.is_empty(), "{refused:#?}");
        drain.signal(Signal::INT);
        drain.ended();
    }
}

#[test]
fn by_default_a_drain_asks_nothing_where_budgets_let_pods_go() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let mark = rig.api.mark();
    let drain = drain(&rig, "warn");
    let run = rig.run(&args(&drain));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(namespace_reads(&rig, mark), 0);
}

#[test]
fn refusing_costs_no_request_where_budgets_let_pods_go() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let mark = rig.api.mark();
    let drain = drain(&rig, "refuse");
    let run = rig.run(&args(&drain));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(namespace_reads(&rig, mark), 0);
}

/// As an API server does that has just restarted.
#[test]
fn namespaces_that_are_refused_for_a_moment_decide_all_the_same() {
    let rig = rig();
    let refused = Fault::new(Action::Status(403, None)).path("/apis/apps/v1/namespaces/*");
    rig.api.faults([refused.count(1)]);
    let run = rig.run(&args(&drain(&rig, "refuse")));
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stdout.contains(CLOSED), "{}", run.stdout);
}
