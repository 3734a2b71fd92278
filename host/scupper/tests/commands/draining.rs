//! Drains that end.

use serde_json::{Value, json};

use crate::kubelet_node::until;
use crate::rig::Rig;

fn finished(stdout: &str) -> Vec<Value> {
    let lines = stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["kind"] == "finished").collect()
}

#[test]
fn the_pods_are_evicted_and_the_node_stays_cordoned() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1").takes(0.2));
    rig.apply(rig.pod("far", "worker-2"));
    let run = rig.run(&["drain", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    for words in [
        "node worker-1 for command drain-worker-1",
        "the node is cordoned",
        "Drained in",
        "the node stays cordoned; to give it back: scupper uncordon worker-1",
    ] {
        assert!(run.stdout.contains(words), "{words}: {run:#?}");
    }
    assert_eq!(rig.pods(), ["far"]);
    assert!(rig.is_cordoned("worker-1") && !rig.is_cordoned("worker-2"));
    let mark = rig.mark("worker-1").unwrap();
    assert_eq!(
        (&mark["phase"], &mark["own_cordon"]),
        (&json!("finished"), &json!(true))
    );
}

/// Nodes are named by hand.
#[test]
fn a_node_that_does_not_exist_is_said_once_with_the_nearest_name() {
    let rig = Rig::new();
    let run = rig.run(&["drain", "wroker-1"]);
    assert_eq!(run.code, Some(4), "{run:#?}");
    let said = "error: there is no node wroker-1; did you mean worker-1?\n";
    assert_eq!(run.stderr, said, "{run:#?}");
    let run = rig.run(&["status", "gpu"]);
    assert_eq!(run.stderr, "error: there is no node gpu\n", "{run:#?}");
}

/// As `kubectl get nodes -o name` prints them.
#[test]
fn the_name_of_a_node_may_carry_its_kind() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    for words in [["plan", "no/worker-1"], ["drain", "node/worker-1"]] {
        let run = rig.run(&words);
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(run.stdout.contains("node worker-1"), "{run:#?}");
    }
    assert!(rig.pods().is_empty() && rig.is_cordoned("worker-1"));
    let run = rig.run(&["uncordon", "nodes/worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"));
}

#[test]
fn a_label_selects_nodes_and_one_that_fails_does_not_stop_the_others() {
    let rig = Rig::new();
    rig.apply(scupper_simulator::api::objects::pod("shop", "bare", "worker-1"));
    rig.apply(rig.pod("web", "worker-2"));
    rig.apply(rig.pod("other", "worker-3"));
    let run = rig.run(&["drain", "-l", "pool=a", "--parallel", "2"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(
        run.stdout
            .contains("1 of 2 nodes are done\nnot done: worker-1 (Blocked)\n"),
        "{run:#?}"
    );
    assert!(
        run.stdout
            .lines()
            .any(|line| line.starts_with("worker-2  ") && line.contains("Drained"))
    );
    assert_eq!(rig.pods(), ["bare", "other"]);
    // The pods that block the drain are printed before anything changes.
    assert!(!rig.is_cordoned("worker-1") && rig.is_cordoned("worker-2") && !rig.is_cordoned("worker-3"));
}

#[test]
fn every_command_reports_a_selector_without_nodes_and_succeeds() {
    let rig = Rig::new();
    for command in [
        &["plan"][..],
        &["forecast"],
        &["drain"],
        &["uncordon"],
        &["cancel"],
        &["status"],
        &["status", "--watch"],
    ] {
        let none = rig.run(&[command, &["-l", "pool=none"]].concat());
        assert_eq!(none.code, Some(0), "{command:?}: {none:#?}");
        assert_eq!(none.stdout, "", "{command:?}");
        assert_eq!(none.stderr, "no node has these labels\n", "{command:?}");
    }
}

#[test]
fn any_finished_node_makes_room_for_the_next_one() {
    let rig = Rig::new();
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    rig.apply(rig.pod("web", "worker-2"));
    rig.apply(rig.pod("other", "worker-3"));
    let drain = rig.start(&["drain", "worker-1", "worker-2", "worker-3", "--parallel", "2"]);
    until("the others are drained beside the first one", || {
        rig.pods() == ["stuck"]
    });
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains("3 of 3 nodes are done"), "{run:#?}");
}

#[test]
fn a_missing_node_is_reported_before_any_drain_begins() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let run = rig.run(&["drain", "worker-1", "nowhere"]);
    assert_eq!(run.code, Some(4), "{run:#?}");
    assert!(run.stderr.contains("nowhere"), "{run:#?}");
    assert_eq!(rig.pods(), ["web"]);
}

#[test]
fn the_time_is_each_nodes_own() {
    let rig = Rig::new();
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    rig.apply(rig.pod("web", "worker-2"));
    let run = rig.run(&[
        "drain",
        "worker-1",
        "worker-2",
        "--timeout",
        "2s",
        "--output",
        "json",
    ]);
    assert_eq!(run.code, Some(6), "{run:#?}");
    let ended = finished(&run.stdout);
    let outcomes: Vec<_> = ended.iter().map(|it| (&it["node"], &it["outcome"])).collect();
    assert_eq!(
        json!(outcomes),
        json!([["worker-1", "DeadlineExceeded"], ["worker-2", "Drained"]])
    );
    assert!(rig.is_cordoned("worker-1"), "as kubectl leaves it");
}

#[test]
fn a_pod_that_terminates_for_too_long_is_skipped() {
    let rig = Rig::new();
    rig.apply(rig.pod("stuck", "worker-1").grace(1).stuck());
    let run = rig.run(&[
        "drain",
        "worker-1",
        "--skip-wait-for-delete-timeout=1",
        "--timeout=60s",
    ]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(
        run.stdout
            .contains("has DeletionTimestamp older than 1 seconds, skipping"),
        "{run:#?}"
    );
    assert_eq!(rig.pods(), ["stuck"]);
}

#[test]
fn without_evictions_pods_are_deleted_by_their_uid() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let mark = rig.api.mark();
    let run = rig.run(&["drain", "worker-1", "--disable-eviction"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let requests = rig.api.requests_since(mark);
    assert!(requests.iter().all(|request| request.subresource != "eviction"));
    let deletes = requests
        .iter()
        .filter(|request| request.verb == "delete" && request.path.contains("/pods/"))
        .filter(|request| request.user_agent.starts_with("scupper"));
    assert_eq!(deletes.count(), 1);
    assert!(run.stdout.contains("delete   shop/web\n"), "{run:#?}");
    let end = "1 pod deleted in 1 wave, 0 kept, 0 remaining; 0 eviction requests, 0 of them refused by a disruption \
               budget; 1 deletion request";
    assert!(run.stdout.contains(end), "{run:#?}");
}
