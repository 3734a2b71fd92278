//! Surge, on a real API server: the real Deployment controller replaces the pod that a budget never lets go.

use std::time::Instant;

use serde_json::{Value, json};

use super::self_claim::{Claimer, DRIVER, LIMIT, OFFICIAL};
use super::setup::{Config, scupper};
use super::testbed::Testbed;
use super::{ALONE, condition, pods_on, skip};

const SETTINGS: &str = "{surge: {timeout: 2m, namespaces: [shop]}, pre-flight: refuse}";

/// A Deployment with its only pod on the node, and a budget that needs it.
pub(super) fn web(testbed: &Testbed, node: &str) {
    let only = "--namespace shop --name web --count 1 --owner deployment --pdb 1";
    let only: Vec<&str> = only.split(' ').collect();
    testbed.make_pods(&[&["--node", node][..], &only].concat());
}

pub(super) fn deployment(testbed: &Testbed) -> Value {
    let read = testbed.kubectl(&["get", "deployments", "-n", "shop", "-o", "json"]);
    let read: Value = serde_json::from_str(&read).unwrap();
    read["items"][0].clone()
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
fn is_replaced(testbed: &Testbed, node: &str) {
    let rollout = testbed.kubectl(&["rollout", "status", "-n", "shop", "deployment", "--timeout=60s"]);
    assert!(rollout.contains("successfully rolled out"), "{rollout}");
    assert_eq!(pods_on(testbed, node), 0);
    let web = deployment(testbed);
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
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--nodes", "2"]);
    web(&testbed, "node-0");
    let config = Config::with(SETTINGS);
    let plan = well(&testbed, &config, &["plan", "node-0"]);
    assert!(plan.contains("is restarted to replace shop/web"), "{plan}");
    assert!(!is_restarted(&deployment(&testbed)));
    let story = well(
        &testbed,
        &config,
        &["drain", "node-0", "--local", "--timeout", "90s"],
    );
    for line in [
        "is restarted to replace shop/web",
        "is restarting; its rollout has 2m00s to replace the pods on this node",
        "the rollout has replaced its pods on this node",
        "end      Drained in ",
    ] {
        assert!(story.contains(line), "{line}: {story}");
    }
    is_replaced(&testbed, "node-0");
}

#[test]
fn a_driver_that_is_killed_during_the_rollout_begins_no_second_one() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--node-grace", "600"]);
    testbed.install("lifecycle.yaml");
    web(&testbed, "node-1");
    let config = Config::with(SETTINGS);
    let start = || Claimer::start_as("node-1", &testbed.kubeconfig(), &["--config", config.path()]);
    let mut driver = start();
    has_published(&mut driver, &testbed);
    // No replacement becomes ready meanwhile.
    testbed.run(&["daemon"], &["kwok", "pause"]);
    let event = driver.asks(&testbed, OFFICIAL, DRIVER, "node-1");
    until(&mut driver, || is_restarted(&deployment(&testbed)));
    drop(driver);
    let mark = testbed.mark();
    let mut driver = start();
    // The first driver did not live long enough to report what it waits for.
    until(&mut driver, || in_progress(&testbed).contains("is waiting for: "));
    assert_eq!(pods_on(&testbed, "node-1"), 1, "{}", driver.log());
    testbed.run(&["daemon"], &["kwok", "resume"]);
    let status = driver.ended(&testbed, OFFICIAL, &event);
    assert_eq!(status, "Succeeded", "{}", driver.log());
    assert_eq!(condition(&testbed, "node-1", "Drained"), "True");
    is_replaced(&testbed, "node-1");
    let requests = testbed.list_requests("scupper", &mark);
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

/// Waits until the driver has published its transitions.
pub(super) fn has_published(driver: &mut Claimer, testbed: &Testbed) {
    until(driver, || {
        let names = testbed.kubectl(&["get", "lifecycletransitions", "-o", "name"]);
        names.lines().count() == 2
    });
}

/// The message of the condition `DrainInProgress`.
pub(super) fn in_progress(testbed: &Testbed) -> String {
    let node = super::node(testbed, "node-1");
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
