//! Surge by one replica more, on a real API server: the real Deployment controller creates the replacement and removes the
//! surplus.

use serde_json::{Value, json};

use super::area::Area;
use super::self_claim::{Claimer, OFFICIAL};
use super::setup::{self, Account, Config, create};
use super::surging::{deployment, in_progress, revision, until, web, well};
use super::testbed::Testbed;
use super::{condition, pods_on, skip};

/// Surge in a namespace.
fn settings(shop: &str) -> Config {
    Config::with(&format!(
        "{{surge: {{timeout: 2m, method: scale, namespaces: [{shop}]}}, pre-flight: refuse}}"
    ))
}

fn is_raised(deployment: &Value) -> bool {
    deployment["metadata"]["annotations"]["scupper.dev/raised-from"] == "1"
}

/// One pod, on another node, and no rollout; the specification has changed twice since the Deployment was in this state.
fn is_taken_back_once(testbed: &Testbed, node: &str, shop: &str, before: &Value) {
    let generation = before["metadata"]["generation"].as_u64().unwrap();
    setup::until("the surplus is removed", || {
        let status = &deployment(testbed, shop)["status"];
        status["replicas"] == 1
            && status["readyReplicas"] == 1
            && status["observedGeneration"] == generation + 2
    });
    let after = deployment(testbed, shop);
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
    let area = Area::with(2);
    let (shop, node) = (web(&area), area.node(0));
    let before = deployment(&area, &shop);
    let config = settings(&shop);
    let plan = well(&area, &config, &["plan", node]);
    let raises = format!("gets one replica more, 1 -> 2, until {shop}/web");
    assert!(plan.contains(&raises), "{plan}");
    assert!(!is_raised(&deployment(&area, &shop)));
    let account = Account::admin(&area);
    let mark = area.mark();
    let drain = ["drain", node, "--local", "--timeout", "90s"];
    let kubeconfig = ["--kubeconfig", account.kubeconfig.to_str().unwrap()];
    let story = well(&area, &config, &[&drain[..], &kubeconfig].concat());
    for line in [
        &raises,
        "has one replica more; its pods on this node have 2m00s to leave",
        "its replicas are as they were before the drain raised them",
        "end      Drained in ",
    ] {
        assert!(story.contains(line), "{line}: {story}");
    }
    is_taken_back_once(&area, node, &shop, &before);
    let requests = area.list_requests(&["--user", &account.user], &mark);
    assert_eq!(patches(&requests), 2, "{requests}");
}

#[test]
fn a_driver_that_is_killed_between_the_raise_and_the_take_back_takes_the_replica_back_once() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(2);
    let (shop, name, node) = (web(&area), area.driver(), area.node(0));
    let before = deployment(&area, &shop);
    let config = settings(&shop);
    let account = Account::admin(&area);
    let start = || Claimer::start(&name, node, &account.kubeconfig, &["--config", config.path()]);
    let mut driver = start();
    driver.publishes(&area);
    // No replacement becomes ready meanwhile.
    area.kubectl(&["cordon", area.node(1)]);
    let event = driver.asks(&area, OFFICIAL, &name);
    until(&mut driver, || is_raised(&deployment(&area, &shop)));
    drop(driver);
    assert_eq!(deployment(&area, &shop)["spec"]["replicas"], json!(2));
    let mark = area.mark();
    let mut driver = start();
    // The first driver did not live long enough to report what it waits for.
    until(&mut driver, || {
        in_progress(&area, node).contains("is waiting for: ")
    });
    assert_eq!(pods_on(&area, node), 1, "{}", driver.log());
    assert!(is_raised(&deployment(&area, &shop)), "{}", driver.log());
    area.kubectl(&["uncordon", area.node(1)]);
    let status = driver.ended(&area, OFFICIAL, &event);
    assert_eq!(status, "Succeeded", "{}", driver.log());
    assert_eq!(condition(&area, node, "Drained"), "True");
    is_taken_back_once(&area, node, &shop, &before);
    let requests = area.list_requests(&["--user", &account.user], &mark);
    assert_eq!(patches(&requests), 1, "{requests}");
}

/// A Deployment with a pod on each of the first four nodes, and a budget that needs all of them.
fn four_pods_apart(area: &Area, shop: &str) {
    area.kubectl(&["cordon", area.node(4), area.node(5)]);
    let labels = json!({"matchLabels": {"app": "web"}});
    let apart = json!({"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": labels});
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": shop},
        "spec": {"replicas": 4, "selector": labels, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"topologySpreadConstraints": [apart], "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "web", "image": "example.com/web:1"}]},
        }},
    });
    create(area, &web);
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": shop},
        "spec": {"minAvailable": 4, "selector": labels},
    });
    create(area, &budget);
    setup::until("its pods are ready", || {
        deployment(area, shop)["status"]["readyReplicas"] == 4
    });
}

#[test]
fn nodes_with_one_pod_each_of_a_deployment_that_needs_all_drain_in_turn() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(6);
    let shop = area.namespace("shop");
    let nodes = &area.nodes()[..4];
    four_pods_apart(&area, &shop);
    for node in nodes {
        assert_eq!(pods_on(&area, node), 1, "{node}");
    }
    area.kubectl(&["uncordon", area.node(4), area.node(5)]);
    let config = settings(&shop);
    let args = ["--local", "--parallel", "4", "--timeout", "180s"];
    let story = well(&area, &config, &[&["drain"][..], nodes, &args].concat());
    for node in nodes {
        assert_eq!(pods_on(&area, node), 0, "{story}");
    }
    setup::until("the surplus is removed", || {
        let web = deployment(&area, &shop);
        web["spec"]["replicas"] == 4 && web["status"]["readyReplicas"] == 4 && web["status"]["replicas"] == 4
    });
    let annotations = &deployment(&area, &shop)["metadata"]["annotations"];
    assert!(annotations["scupper.dev/raised-from"].is_null(), "{annotations}");
}
