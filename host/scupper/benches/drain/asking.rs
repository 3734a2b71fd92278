//! How many requests a policy adds to a drain by asking about the cluster: 110 pods of 20 Deployments in 4 namespaces.

use std::path::{Path, PathBuf};

use scupper_policy_spec::FACTS;
use serde_json::json;

use super::driver::Driver;
use super::guests::guest;
use super::testbed::Testbed;
use super::{IDLE, PODS};

const NODE: &str = "node-2";
const DEPLOYMENTS: usize = 20;
const NAMESPACES: usize = 4;

/// Each namespace, the budgets, and in each namespace the ReplicaSets and the Deployments; the end of the policy's hook.
const MOST: usize = 15;

pub(crate) async fn compare(testbed: &Testbed) {
    let mut driver = Driver::start(testbed, "bench", NODE, None).await;
    let without = requests(testbed, &driver).await;
    let dir = tempfile::tempdir().unwrap();
    let config = configuration(dir.path());
    driver.restart_with(&["--config", config.to_str().unwrap()]).await;
    let asking = requests(testbed, &driver).await;
    let more = asking.saturating_sub(without);
    println!("requests for {PODS} pods of {DEPLOYMENTS} Deployments in {NAMESPACES} namespaces:");
    println!("  without policies         {without:>7}");
    println!("  a policy that asks for namespaces, budgets and owners {asking}, {more} more");
    assert!(more <= MOST, "more than {MOST} for what the policy asks");
}

/// A policy that asks in its planner.
fn configuration(dir: &Path) -> PathBuf {
    let namespaces = (0..NAMESPACES).map(|number| format!("\nnamespace {}", namespace(number)));
    let ask = format!("budgets\nowners{}", namespaces.collect::<String>());
    let policy = json!({"name": "asks", "module": guest("asks"), "config": {"ask": ask, "then": "go on"},
        "grants": {"facts": FACTS}});
    let whole = json!({"apiVersion": "scupper.dev/v1alpha1", "kind": "Configuration", "policies": [policy]});
    let file = dir.join("scupper.yaml");
    std::fs::write(&file, whole.to_string()).unwrap();
    file
}

/// The requests of one drain. Its pods are gone afterwards, as are their replacements.
async fn requests(testbed: &Testbed, driver: &Driver) -> usize {
    for number in 0..DEPLOYMENTS {
        let count = PODS / DEPLOYMENTS + usize::from(number < PODS % DEPLOYMENTS);
        let (count, name) = (count.to_string(), format!("web-{number}"));
        let namespace = namespace(number % NAMESPACES);
        testbed.make_pods(&[
            "--node",
            NODE,
            "--owner",
            "deployment",
            "--namespace",
            &namespace,
            "--name",
            &name,
            "--count",
            &count,
            "--takes",
            "0",
        ]);
    }
    // The policy's check asks as well, once at the driver's start.
    tokio::time::sleep(IDLE).await;
    let mark = testbed.mark();
    driver.drain(testbed).await;
    let requests = testbed.requests(&["--user-agent", "scupper"], &mark);
    driver.give_back(testbed).await;
    let namespaces: Vec<String> = (0..NAMESPACES).map(namespace).collect();
    let names = namespaces.iter().map(String::as_str);
    let delete: Vec<&str> = ["delete", "namespace"].into_iter().chain(names).collect();
    testbed.kubectl(&delete);
    requests
}

fn namespace(number: usize) -> String {
    format!("shop-{number}")
}
