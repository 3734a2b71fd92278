//! Surge by one replica more, on a real API server: the real Deployment controller creates the replacement and removes the
//! surplus.

use serde_json::{Value, json};

use super::self_claim::{Claimer, DRIVER, OFFICIAL};
use super::setup::{self, Config};
use super::surging::{deployment, has_published, in_progress, revision, until, web, well};
use super::testbed::Testbed;
use super::{ALONE, condition, pods_on, skip};

const SETTINGS: &str = "{surge: {timeout: 2m, method: scale, namespaces: [shop]}, pre-flight: refuse}";

fn is_raised(deployment: &Value) -> bool {
    deployment["metadata"]["annotations"]["scupper.dev/raised-from"] == "1"
}

/// One pod, on another node, and no rollout; the specification has changed twice since the Deployment was in this state.
fn is_taken_back_once(testbed: &Testbed, node: &str, before: &Value) {
    let generation = before["metadata"]["generation"].as_u64().unwrap();
    setup::until("the surplus is removed", || {
        let status = &deployment(testbed)["status"];
        status["replicas"] == 1
            && status["readyReplicas"] == 1
            && status["observedGeneration"] == generation + 2
    });
    let after = deployment(testbed);
    assert_eq!(after["spec"]["replicas"], 1, "{after:#}");
    assert_eq!(after["metadata"]["generation"], generation + 2, "{after:#}");
    assert_eq!(revision(&after), revision(before));
    assert_eq!(after["spec"]["template"], before["spec"]["template"]);
    let annotations = &after["metadata"]["annotations"];
    assert!(
        annotations["scupper.dev/raised-from"].is_null() && annotations["scupper.dev/surge"].is_string(),
        "{after:#}"
    );
    assert_eq!(pods_on(testbed, node), 0);
}

/// How many patches of Deployments were made. One that finds another version than it read is made again.
fn patches(requests: &str) -> usize {
    let lines = requests.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(1..4)? == ["patch", "deployments.apps", "200"]).then(|| words[0].parse::<usize>().unwrap())
    });
    lines.sum()
}

#[test]
fn the_controller_creates_a_second_pod_elsewhere_and_removes_the_surplus_afterwards() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--nodes", "2"]);
    web(&testbed, "node-0");
    let before = deployment(&testbed);
    let config = Config::with(SETTINGS);
    let plan = well(&testbed, &config, &["plan", "node-0"]);
    assert!(
        plan.contains("gets one replica more, 1 -> 2, until shop/web"),
        "{plan}"
    );
    assert!(!is_raised(&deployment(&testbed)));
    let mark = testbed.mark();
    let story = well(
        &testbed,
        &config,
        &["drain", "node-0", "--local", "--timeout", "90s"],
    );
    for line in [
        "gets one replica more, 1 -> 2, until shop/web",
        "has one replica more; its pods on this node have 2m00s to leave",
        "its replicas are as they were before the drain raised them",
        "end      Drained in ",
    ] {
        assert!(story.contains(line), "{line}: {story}");
    }
    is_taken_back_once(&testbed, "node-0", &before);
    let requests = testbed.list_requests("scupper", &mark);
    assert_eq!(patches(&requests), 2, "{requests}");
}

#[test]
fn a_driver_that_is_killed_between_the_raise_and_the_take_back_takes_the_replica_back_once() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--node-grace", "600"]);
    testbed.install("lifecycle.yaml");
    web(&testbed, "node-1");
    let before = deployment(&testbed);
    let config = Config::with(SETTINGS);
    let start = || Claimer::start_as("node-1", &testbed.kubeconfig(), &["--config", config.path()]);
    let mut driver = start();
    has_published(&mut driver, &testbed);
    // No replacement becomes ready meanwhile.
    testbed.run(&["daemon"], &["kwok", "pause"]);
    let event = driver.asks(&testbed, OFFICIAL, DRIVER, "node-1");
    until(&mut driver, || is_raised(&deployment(&testbed)));
    drop(driver);
    assert_eq!(deployment(&testbed)["spec"]["replicas"], json!(2));
    let mark = testbed.mark();
    let mut driver = start();
    // The first driver did not live long enough to report what it waits for.
    until(&mut driver, || in_progress(&testbed).contains("is waiting for: "));
    assert_eq!(pods_on(&testbed, "node-1"), 1, "{}", driver.log());
    assert!(is_raised(&deployment(&testbed)), "{}", driver.log());
    testbed.run(&["daemon"], &["kwok", "resume"]);
    let status = driver.ended(&testbed, OFFICIAL, &event);
    assert_eq!(status, "Succeeded", "{}", driver.log());
    assert_eq!(condition(&testbed, "node-1", "Drained"), "True");
    is_taken_back_once(&testbed, "node-1", &before);
    let requests = testbed.list_requests("scupper", &mark);
    assert_eq!(patches(&requests), 1, "{requests}");
}

/// A Deployment with a pod on each of the first four nodes, and a budget that needs all of them.
fn four_pods_apart(testbed: &Testbed) {
    testbed.kubectl(&["cordon", "node-4", "node-5"]);
    testbed.kubectl(&["create", "namespace", "shop"]);
    let labels = json!({"matchLabels": {"app": "web"}});
    let apart = json!({"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": labels});
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 4, "selector": labels, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"topologySpreadConstraints": [apart], "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "web", "image": "example.com/web:1"}]},
        }},
    });
    setup::apply(testbed, &web);
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 4, "selector": labels},
    });
    setup::apply(testbed, &budget);
    setup::until("its pods are ready", || {
        deployment(testbed)["status"]["readyReplicas"] == 4
    });
}

#[test]
fn nodes_with_one_pod_each_of_a_deployment_that_needs_all_drain_in_turn() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--nodes", "6"]);
    let nodes = ["node-0", "node-1", "node-2", "node-3"];
    four_pods_apart(&testbed);
    for node in nodes {
        assert_eq!(pods_on(&testbed, node), 1, "{node}");
    }
    testbed.kubectl(&["uncordon", "node-4", "node-5"]);
    let config = Config::with(SETTINGS);
    let args = ["--local", "--parallel", "4", "--timeout", "180s"];
    let story = well(&testbed, &config, &[&["drain"][..], &nodes, &args].concat());
    for node in nodes {
        assert_eq!(pods_on(&testbed, node), 0, "{story}");
    }
    setup::until("the surplus is removed", || {
        let web = deployment(&testbed);
        web["spec"]["replicas"] == 4 && web["status"]["readyReplicas"] == 4 && web["status"]["replicas"] == 4
    });
    let annotations = &deployment(&testbed)["metadata"]["annotations"];
    assert!(annotations["scupper.dev/raised-from"].is_null(), "{annotations}");
}
