//! Force at the deadline, on a real API server: a pod behind a budget that never opens is deleted, a long grace period is
//! shortened, and a pod in a namespace that the operator did not name stays.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::area::Area;
use super::driver::Driver;
use super::setup::{Config, create, events_of, until};
use super::skip;
use super::testbed::Testbed;

/// A pod of our own, which needs so long to end.
fn pod(testbed: &Testbed, node: &str, namespace: &str, name: &str, takes: &str) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name},
            "annotations": {"testbed/takes": takes}},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 3600,
            "containers": [{"name": "main", "image": "none"}]}});
    create(testbed, &pod);
}

/// A budget that allows no eviction of the pod.
fn budget(testbed: &Testbed, namespace: &str, of: &str) {
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": format!("keep-{of}"), "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": of}}}});
    create(testbed, &budget);
    let pod = format!("/api/v1/namespaces/{namespace}/pods/{of}");
    until("the pod is ready", || {
        let pod = testbed.get(&pod);
        let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
    });
}

/// Pods of `shop` are deleted.
fn settings(shop: &str) -> String {
    format!("at-deadline: {{delete: {{namespaces: [{shop}]}}, grace-period: 2s, within: 20s}}")
}

/// `web` and `db` behind budgets that never open, in namespaces of their own, and `slow`, which takes too long to end.
fn pods(testbed: &Testbed, node: &str, shop: &str, db: &str) {
    pod(testbed, node, shop, "web", "0");
    pod(testbed, node, shop, "slow", "3000");
    pod(testbed, node, db, "db", "0");
    budget(testbed, shop, "web");
    budget(testbed, db, "db");
}

/// The names of all pods on the node.
fn left(testbed: &Testbed, node: &str) -> Vec<String> {
    let pods = testbed.get(&format!("/api/v1/pods?fieldSelector=spec.nodeName={node}"));
    let pods = pods["items"].as_array().unwrap().iter();
    pods.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The pods that Events name as deleted.
fn forced_by_events(testbed: &Testbed, shop: &str) -> Vec<String> {
    let events = testbed.get(&format!("/api/v1/namespaces/{shop}/events"));
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
    let area = Area::with(1);
    let (name, shop, db) = (area.node(0), area.namespace("shop"), area.namespace("db"));
    pods(&area, name, &shop, &db);
    let config = Config::with(&format!("{{{}}}", settings(&shop)));
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command.args([
        "drain",
        name,
        "--local",
        "--force",
        "--timeout",
        "30s",
        "--config",
    ]);
    command.arg(config.path());
    command.env("KUBECONFIG", area.kubeconfig()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let story = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(6), "{story}");
    let deleted = "remained shortly before the deadline; deleted with a grace period of 2s";
    for line in [
        format!("force    {shop}/slow {deleted}: terminating"),
        format!("force    {shop}/web {deleted}: budget keep-web blocks it"),
        format!("the deadline passed with one pod still there: {db}/db"),
        "force    2 pods deleted shortly before the deadline: ".to_owned(),
    ] {
        assert!(story.contains(&line), "{line}: {story}");
    }
    assert_eq!(left(&area, name), ["db"]);
    assert_eq!(forced_by_events(&area, &shop), ["slow", "web"]);
}

/// The driver drains by a LifecycleEvent that cannot succeed, because a pod stays that the operator did not name.
#[tokio::test(flavor = "multi_thread")]
async fn a_lifecycle_event_expires_and_its_drain_says_which_pods_were_deleted() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let (node, shop, db) = (area.node(0), area.namespace("shop"), area.namespace("db"));
    pods(&area, node, &shop, &db);
    let config = Config::with(&format!("{{sla: 45s, {}}}", settings(&shop)));
    let mut driver = Driver::start(&area, &area.driver(), node, None).await;
    let transition = format!(
        "/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions/{}",
        area.driver()
    );
    let sla = || area.get(&transition)["spec"]["sla"].clone();
    let before = sla();
    driver.restart_with(&["--config", config.path()]).await;
    // It is ready a moment before, and the kubelet takes an event's time from the transition.
    until("the time that drains have is published", || sla() != before);
    let (name, status) = driver.ended_event(&area, &area.driver()).await;
    // The driver does not answer for the kubelet that the event's own time is over, and may see it later.
    assert_eq!(status, "SlaExpired");
    until("the driver reports the end", || {
        driver.lines(&name).iter().any(|line| line["kind"] == "finished")
    });
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
            format!(r#""{shop}/slow" "Terminating" 2"#),
            format!(r#""{shop}/web" "BudgetExhausted" 2"#)
        ]
    );
    let finished = of_kind("finished").remove(0);
    assert_eq!(finished["outcome"], "DeadlineExceeded", "{finished:#}");
    assert_eq!(
        (&finished["gone"], &finished["remaining"]),
        (&json!(2), &json!(1)),
        "{finished:#}"
    );
    assert_eq!(left(&area, node), ["db"]);
    until("Events name both pods", || {
        forced_by_events(&area, &shop) == ["slow", "web"]
    });
    until("the node's condition names all three", || {
        drained_names_all(&area, node, &shop, &db)
    });
    until("an Event of the node names both pods", || {
        events_of(&area, "default", node).iter().any(|it| {
            let note = it["message"].as_str().unwrap_or_default();
            it["involvedObject"]["kind"] == "Node"
                && note.contains("2 pods deleted shortly before the deadline: ")
        })
    });
}

/// The condition `Drained` is false, and its message names the pod that stays and both that were deleted.
#[expect(clippy::print_stdout, reason = "the output of a failed test shows it")]
fn drained_names_all(area: &Area, node: &str, shop: &str, db: &str) -> bool {
    let conditions = super::node(area, node)["status"]["conditions"].clone();
    let mut conditions = conditions.as_array().unwrap().iter();
    let drained = conditions.find(|it| it["type"] == "Drained").unwrap();
    println!("{drained}");
    let message = drained["message"].as_str().unwrap();
    let words = [
        format!("{db}/db"),
        "2 pods deleted shortly before the deadline: ".to_owned(),
        format!("{shop}/slow"),
        format!("{shop}/web"),
    ];
    drained["status"] == "False" && words.iter().all(|it| message.contains(it))
}
