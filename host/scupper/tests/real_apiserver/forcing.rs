//! Force at the deadline, on a real API server: a pod behind a budget that never opens is deleted, a long grace period is
//! shortened, and a pod in a namespace that the operator did not name stays.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::driver::Driver;
use super::setup::{Config, apply};
use super::testbed::Testbed;
use super::{ALONE, condition, node, skip};

const NODE: &str = "node-0";

/// A pod of our own, in a namespace of its own, which needs so long to end.
fn pod(testbed: &Testbed, node: &str, namespace: &str, name: &str, takes: &str) {
    apply(
        testbed,
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
    );
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name},
            "annotations": {"testbed/takes": takes}},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 3600,
            "containers": [{"name": "main", "image": "none"}]}});
    apply(testbed, &pod);
}

/// A budget that allows no eviction of the pod.
fn budget(testbed: &Testbed, namespace: &str, of: &str) {
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": format!("keep-{of}"), "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": of}}}});
    apply(testbed, &budget);
    testbed.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "-n",
        namespace,
        &format!("pod/{of}"),
    ]);
}

const IN_SHOP: &str = "at-deadline: {delete: {namespaces: [shop]}, grace-period: 2s, within: 20s}";

/// `web` and `db` behind budgets that never open, in namespaces of their own, and `slow`, which takes too long to end.
fn pods(testbed: &Testbed, node: &str) {
    pod(testbed, node, "shop", "web", "0");
    pod(testbed, node, "shop", "slow", "3000");
    pod(testbed, node, "db", "db", "0");
    budget(testbed, "shop", "web");
    budget(testbed, "db", "db");
}

/// The names of all pods.
fn left(testbed: &Testbed) -> String {
    let names = "jsonpath={.items[*].metadata.name}";
    let names = testbed.kubectl(&["get", "pods", "--all-namespaces", "-o", names]);
    names.trim().to_owned()
}

/// The pods that Events name as deleted.
fn forced_by_events(testbed: &Testbed) -> Vec<String> {
    let events = testbed.kubectl(&["get", "events", "-n", "shop", "-o", "json"]);
    let events: Value = serde_json::from_str(&events).unwrap();
    let items = events["items"].as_array().unwrap().iter();
    let forced = items.filter(|it| it["reason"] == "ForcedAtDeadline");
    let mut names: Vec<_> = forced
        .map(|it| it["involvedObject"]["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn what_the_operator_named_is_gone_before_the_deadline_and_the_rest_stays() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--nodes", "2"]);
    pods(&testbed, NODE);
    let config = Config::with(&format!("{{{IN_SHOP}}}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command.args([
        "drain",
        NODE,
        "--local",
        "--force",
        "--timeout",
        "30s",
        "--config",
    ]);
    command.arg(config.path());
    command
        .env("KUBECONFIG", testbed.kubeconfig())
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let story = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(6), "{story}");
    for line in [
        "force    shop/slow remained shortly before the deadline; deleted with a grace period of 2s: terminating",
        "force    shop/web remained shortly before the deadline; deleted with a grace period of 2s: disruption \
         budget keep-web does not allow it",
        "the deadline passed with one pod still there: db/db",
        "force    2 pods deleted shortly before the deadline: ",
    ] {
        assert!(story.contains(line), "{line}: {story}");
    }
    assert_eq!(left(&testbed), "db");
    assert_eq!(forced_by_events(&testbed), ["slow", "web"]);
}

/// The driver drains by a LifecycleEvent that cannot succeed, because a pod stays that the operator did not name.
#[tokio::test(flavor = "multi_thread")]
async fn a_lifecycle_event_expires_and_its_drain_says_which_pods_were_deleted() {
    const NODE: &str = "node-1";
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let testbed = Testbed::up();
    pods(&testbed, NODE);
    let config = Config::with(&format!("{{sla: 45s, {IN_SHOP}}}"));
    let mut driver = Driver::start(&testbed, NODE, None).await;
    driver.restart_with(&["--config", config.path()]).await;
    let (name, status) = driver.ended_event(&testbed, "bench").await;
    // The driver does not answer for the kubelet that the event's own time is over.
    assert_eq!(status, "SlaExpired");
    let lines = driver.lines(&name);
    let of_kind = |kind: &str| {
        lines
            .iter()
            .filter(|line| line["kind"] == kind)
            .collect::<Vec<_>>()
    };
    let mut forced: Vec<_> = of_kind("podForced")
        .iter()
        .map(|line| {
            [&line["pod"], &line["reason"], &line["gracePeriodSeconds"]]
                .map(Value::to_string)
                .join(" ")
        })
        .collect();
    forced.sort();
    assert_eq!(
        forced,
        [
            r#""shop/slow" "Terminating" 2"#,
            r#""shop/web" "BudgetExhausted" 2"#
        ]
    );
    let finished = of_kind("finished").remove(0);
    assert_eq!(finished["outcome"], "DeadlineExceeded", "{finished:#}");
    assert_eq!(
        (&finished["gone"], &finished["remaining"]),
        (&json!(2), &json!(1)),
        "{finished:#}"
    );
    assert_eq!(left(&testbed), "db");
    assert_eq!(forced_by_events(&testbed), ["slow", "web"]);
    assert_eq!(condition(&testbed, NODE, "Drained"), "False");
    let node = node(&testbed, NODE);
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let drained = conditions.iter().find(|it| it["type"] == "Drained").unwrap();
    let message = drained["message"].as_str().unwrap();
    for words in [
        "db/db",
        "2 pods deleted shortly before the deadline: ",
        "shop/slow",
        "shop/web",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let events = testbed.kubectl(&["get", "events", "-o", "json"]);
    let events: Value = serde_json::from_str(&events).unwrap();
    let mut of_node = events["items"].as_array().unwrap().iter();
    let names_both = |it: &Value| {
        let note = it["message"].as_str().unwrap_or_default();
        it["involvedObject"]["kind"] == "Node"
            && note.contains("2 pods deleted shortly before the deadline: ")
    };
    assert!(of_node.any(names_both), "{events:#}");
}
