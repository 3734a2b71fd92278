//! Force at the deadline: pods that still stand shortly before it are deleted, where the operator says so.

use std::path::PathBuf;

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, asks};
use crate::rig::{Rig, Run};

/// A budget that never opens holds `web`. Another one holds `db` in a namespace of its own.
fn rig() -> Rig {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.budget("keep-web", "web");
    rig
}

fn and_a_database(rig: &Rig) {
    rig.apply(objects::namespace("db"));
    rig.apply(
        objects::pod("db", "db-0", "worker-1")
            .owner_replicaset("db")
            .label("app", "db"),
    );
    rig.apply(objects::budget("db", "keep-db", &[("app", "db")], 1));
}

/// The pod's ReplicaSet wants just this pod, so what its budget refuses is certain. To be applied after the pod.
fn settle(rig: &Rig, namespace: &str, set: &str) {
    rig.apply(
        objects::replica_set(namespace, set, 1)
            .with("/status/replicas", 1)
            .with("/status/observedGeneration", 1),
    );
}

fn config(rig: &Rig, drain: &str) -> PathBuf {
    let file = rig.dir.path().join("scupper.yaml");
    let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n";
    std::fs::write(&file, format!("{head}drain:\n{drain}")).unwrap();
    file
}

const IN_SHOP: &str = "  at-deadline: {delete: {namespaces: [shop]}, grace-period: 1s, within: 12s}\n";

/// A drain of 16 seconds.
fn drain(rig: &Rig, settings: &str) -> Run {
    let file = config(rig, settings);
    let file = file.to_str().unwrap();
    rig.run(&[
        "drain",
        "worker-1",
        "--local",
        "--timeout",
        "16s",
        "--config",
        file,
    ])
}

/// How pods were deleted: the URL's namespace and name, and the body.
fn deletions(rig: &Rig) -> Vec<String> {
    let requests = rig.api.requests_since(0);
    let deletions = requests
        .iter()
        .filter(|it| it.resource == "pods" && it.verb == "delete");
    deletions.map(|it| it.path.clone()).collect()
}

fn condition(rig: &Rig, kind: &str) -> Value {
    let conditions = rig.node("worker-1")["status"]["conditions"].clone();
    let mut conditions = conditions.as_array().unwrap().iter();
    conditions.find(|it| it["type"] == kind).unwrap().clone()
}

#[test]
fn a_pod_behind_a_budget_is_deleted_before_the_deadline_and_the_drain_is_done() {
    let rig = rig();
    let run = drain(&rig, IN_SHOP);
    assert_eq!(run.code, Some(0), "{run:#?}");
    for line in [
        "12s before the deadline: deletes remaining pods in shop, with a grace period of at most 1s",
        "force    shop/web remained shortly before the deadline; deleted with a grace period of 1s: budget keep-web \
         blocks it",
        "end      Drained in ",
        "force    1 pod deleted shortly before the deadline: shop/web",
    ] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    assert_eq!(deletions(&rig), ["/api/v1/namespaces/shop/pods/web"]);
    let drained = condition(&rig, "Drained");
    let text = "1 pod deleted, 0 kept as planned; 1 pod deleted shortly before the deadline: shop/web";
    assert!(
        drained["status"] == "True" && drained["message"].as_str().unwrap().ends_with(text),
        "{drained}"
    );
    let events = rig.objects("events.events.k8s.io");
    let of_pod = events
        .iter()
        .find(|it| it["reason"] == "ForcedAtDeadline")
        .unwrap();
    assert_eq!(
        (
            &of_pod["type"],
            &of_pod["regarding"]["kind"],
            &of_pod["regarding"]["name"]
        ),
        (&json!("Warning"), &json!("Pod"), &json!("web"))
    );
}

#[test]
fn a_pod_that_the_operator_did_not_name_stays_and_the_drain_says_so() {
    let rig = rig();
    and_a_database(&rig);
    let run = drain(&rig, IN_SHOP);
    assert_eq!(run.code, Some(6), "{run:#?}");
    let end = "the deadline passed with one pod still there: db/db-0";
    assert!(run.stdout.contains(end), "{}", run.stdout);
    assert_eq!(rig.pods(), ["db-0"]);
    assert_eq!(deletions(&rig), ["/api/v1/namespaces/shop/pods/web"]);
    let drained = condition(&rig, "Drained");
    let message = drained["message"].as_str().unwrap();
    assert!(
        drained["status"] == "False"
            && message.contains("1 pod deleted shortly before the deadline: shop/web"),
        "{drained}"
    );
}

/// What the budgets hold for certain goes at the deadline, so the drain can end.
#[test]
fn a_drain_is_refused_only_for_pods_that_remain_after_the_deadline() {
    let settings = format!("{IN_SHOP}  pre-flight: refuse\n");
    let rig = rig();
    settle(&rig, "shop", "web");
    let run = drain(&rig, &settings);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let found = "blocks its pods even when all are healthy, so the pod remains until 12s before the \
                 deadline: shop/web";
    assert!(run.stdout.contains(found), "{}", run.stdout);
    assert!(!run.stdout.contains("will not leave"), "{}", run.stdout);
    assert_eq!(deletions(&rig), ["/api/v1/namespaces/shop/pods/web"]);

    let rig = self::rig();
    settle(&rig, "shop", "web");
    and_a_database(&rig);
    settle(&rig, "db", "db");
    let run = drain(&rig, &settings);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let refused = "pods cannot be evicted; nothing has changed: db/db-0: budget db/keep-db";
    assert!(run.stdout.contains(refused), "{}", run.stdout);
    assert!(deletions(&rig).is_empty());

    // With the driver's own deadline, which is none of a command.
    let file = config(&rig, &format!("{settings}  sla: 5m\n"));
    let run = rig.run(&["doctor", "--node", "worker-1", "--config", file.to_str().unwrap()]);
    for found in [
        "certain: budget db/keep-db",
        "likely: budget shop/keep-web",
        "so the pod remains until 12s before the deadline: shop/web",
    ] {
        assert!(run.stdout.contains(found), "{found}: {}", run.stdout);
    }
}

#[test]
fn the_plan_says_before_it_happens_what_would_be_deleted() {
    let rig = rig();
    settle(&rig, "shop", "web");
    and_a_database(&rig);
    let file = config(
        &rig,
        "  at-deadline: {delete: {namespaces: [shop], priority-below: 1000}, within: 1m}\n",
    );
    let without = ["plan", "worker-1", "--config", file.to_str().unwrap()];
    let args = [&without[..], &["--timeout", "5m"]].concat();
    let run = rig.run(&args);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let lines = "1m00s before the deadline: deletes any remaining of 1 pod in shop with a priority below 1000, \
                 without asking disruption budgets, with a grace period of at most 30s\n  shop/web\n";
    assert!(run.stdout.contains(lines), "{}", run.stdout);
    let run = rig.run(&[&args[..], &["--output", "json"]].concat());
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let force = json!({"withinSeconds": 60.0, "gracePeriodSeconds": 30, "namespaces": ["shop"], "priorityBelow": 1000,
        "awaitCompletion": false, "pods": ["shop/web"]});
    assert_eq!(plan["atDeadline"], force);

    // Without a deadline there is no moment before it.
    let run = rig.run(&without);
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stdout.contains("could not end"), "{}", run.stdout);
    let line =
        "drain.at-deadline deletes nothing, because the drain has no deadline; give it one with --timeout";
    assert!(run.stdout.contains(line), "{}", run.stdout);
    let run = rig.run(&[&without[..], &["--output", "json"]].concat());
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(plan["atDeadline"], Value::Null);
}

#[test]
fn a_request_that_shortens_the_drain_deletes_nothing_unless_the_operator_allows_it() {
    for (allowed, code, deleted) in [("", 6, 0), ("  allow-overrides: [at-deadline]\n", 0, 1)] {
        let rig = rig();
        // It stays long enough for the follower to see that it is deleted.
        rig.apply(rig.pod("web", "worker-1").takes(1.0));
        let file = config(&rig, &format!("{IN_SHOP}{allowed}"));
        let _agent = Agent::with(&rig, false, &["--config", file.to_str().unwrap()]);
        let mut follower = rig.start(&asks("drain", &["--timeout", "40s"]));
        follower.prints("budget keep-web");
        if deleted == 1 {
            let status = rig.run(&["status", "worker-1"]);
            assert!(
                status
                    .stdout
                    .contains(": deletes any remaining of 1 pod: shop/web"),
                "{}",
                status.stdout
            );
        }
        let run = follower.ended();
        assert_eq!(run.code, Some(code), "{allowed}: {run:#?}");
        for line in [
            ": deletes any remaining of 1 pod: shop/web",
            "force    shop/web remained shortly before the deadline; deleted",
        ] {
            let lines = run.stdout.matches(line).count();
            assert_eq!(lines, deleted, "{line}: {}", run.stdout);
        }
        assert_eq!(deletions(&rig).len(), deleted, "{allowed}");
    }
}
