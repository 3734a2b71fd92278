//! Surge, on a real API server: the real Deployment controller replaces the pod that a budget never lets go.

use std::time::Instant;

use serde_json::{Value, json};

use super::area::Area;
use super::self_claim::{Claimer, LIMIT, OFFICIAL};
use super::setup::{self, Account, Config, scupper};
use super::testbed::Testbed;
use super::{condition, pods_on, skip};

/// Surge in a namespace.
fn settings(shop: &str) -> Config {
    Config::with(&format!(
        "{{surge: {{timeout: 2m, namespaces: [{shop}]}}, pre-flight: refuse}}"
    ))
}

/// A Deployment with its only pod on the area's first node, and a budget that needs it; its namespace.
pub(super) fn web(area: &Area) -> String {
    let shop = area.namespace("shop");
    let only = [
        "--name",
        "web",
        "--count",
        "1",
        "--owner",
        "deployment",
        "--pdb",
        "1",
    ];
    let there = ["--node", area.node(0), "--namespace", &shop];
    area.make_pods(&[&there[..], &only].concat());
    shop
}

pub(super) fn deployment(testbed: &Testbed, shop: &str) -> Value {
    testbed.get(&format!("/apis/apps/v1/namespaces/{shop}/deployments/web"))
}

/// The number of rollouts there were, by the controller's own count.
pub(super) fn revision(deployment: &Value) -> &str {
    let annotations = &deployment["metadata"]["annotations"];
    annotations["deployment.kubernetes.io/revision"].as_str().unwrap()
}

fn is_restarted(deployment: &Value) -> bool {
    deployment["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"].is_string()
}

/// The old ReplicaSet has no pods any more, and the new one has its own ready, elsewhere.
fn is_replaced(testbed: &Testbed, node: &str, shop: &str) {
    setup::until("it is rolled out", || {
        let web = deployment(testbed, shop);
        let status = &web["status"];
        status["observedGeneration"] == web["metadata"]["generation"]
            && (&status["updatedReplicas"], &status["replicas"]) == (&json!(1), &json!(1))
            && status["availableReplicas"] == 1
    });
    assert_eq!(pods_on(testbed, node), 0);
    let web = deployment(testbed, shop);
    assert_eq!(
        (revision(&web), &web["status"]["readyReplicas"]),
        ("2", &json!(1))
    );
}

#[test]
fn the_controller_replaces_the_only_pod_of_a_deployment_on_another_node() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(2);
    let (shop, node) = (web(&area), area.node(0));
    let config = settings(&shop);
    let plan = well(&area, &config, &["plan", node]);
    let replaces = format!("is restarted to replace {shop}/web");
    assert!(plan.contains(&replaces), "{plan}");
    assert!(!is_restarted(&deployment(&area, &shop)));
    let story = well(&area, &config, &["drain", node, "--local", "--timeout", "90s"]);
    for line in [
        &replaces,
        "is restarting; its rollout has 2m00s to replace the pods on this node",
        "the rollout has replaced its pods on this node",
        "end      Drained in ",
    ] {
        assert!(story.contains(line), "{line}: {story}");
    }
    is_replaced(&area, node, &shop);
}

#[test]
fn a_driver_that_is_killed_during_the_rollout_begins_no_second_one() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(2);
    let (shop, name, node) = (web(&area), area.driver(), area.node(0));
    let config = settings(&shop);
    let account = Account::admin(&area);
    let start = || Claimer::start(&name, node, &account.kubeconfig, &["--config", config.path()]);
    let mut driver = start();
    driver.publishes(&area);
    // No replacement becomes ready meanwhile.
    area.kubectl(&["cordon", area.node(1)]);
    let event = driver.asks(&area, OFFICIAL, &name);
    until(&mut driver, || is_restarted(&deployment(&area, &shop)));
    drop(driver);
    let mark = area.mark();
    let mut driver = start();
    // The first driver did not live long enough to report what it waits for.
    until(&mut driver, || {
        in_progress(&area, node).contains("is waiting for: ")
    });
    assert_eq!(pods_on(&area, node), 1, "{}", driver.log());
    area.kubectl(&["uncordon", area.node(1)]);
    let status = driver.ended(&area, OFFICIAL, &event);
    assert_eq!(status, "Succeeded", "{}", driver.log());
    assert_eq!(condition(&area, node, "Drained"), "True");
    is_replaced(&area, node, &shop);
    let requests = area.list_requests(&["--user", &account.user], &mark);
    assert!(requests.contains("nodes"), "{requests}");
    let is_patch = |line: &&str| line.contains("patch") && line.contains("deployments");
    assert_eq!(requests.lines().find(is_patch), None, "{requests}");
}

/// Prints what it should, and exits with 0.
pub(super) fn well(testbed: &Testbed, config: &Config, args: &[&str]) -> String {
    let (code, text) = scupper(testbed, &[args, &["--config", config.path()]].concat());
    assert_eq!(code, Some(0), "{text}");
    text
}

/// The message of the condition `DrainInProgress`.
pub(super) fn in_progress(testbed: &Testbed, node: &str) -> String {
    let node = super::node(testbed, node);
    let mut conditions = node["status"]["conditions"].as_array().unwrap().iter();
    let found = conditions.find(|condition| condition["type"] == "DrainInProgress");
    found.map_or_else(String::new, |found| found["message"].as_str().unwrap().to_owned())
}

pub(super) fn until(driver: &mut Claimer, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(driver.is_running() && begun.elapsed() < LIMIT, "{}", driver.log());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
