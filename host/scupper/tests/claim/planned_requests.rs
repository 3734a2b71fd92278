//! `scupper plan --drain-request`: the drain that the driver would run for a DrainRequest.

use std::fs;
use std::process::Output;

use tokio::process::Command;

use serde_json::{Value, json};

use crate::drain_request_facts::{policy, reset, with_gpu};
use crate::drain_requests::Site;
use crate::rig::NODE;

fn config(policies: Value, drain_requests: Option<Value>) -> Value {
    let mut config =
        json!({"apiVersion": "scupper.dev/v1alpha1", "kind": "Configuration", "policies": policies});
    if let Some(section) = drain_requests {
        config["drain-requests"] = section;
    }
    config
}

async fn plan(site: &Site, config: &Value, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scupper.yaml");
    fs::write(&file, config.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command.arg("plan").arg("--config").arg(file);
    command.arg("--kubeconfig").arg(site.kubeconfig());
    command.args(more).output().await.unwrap()
}

async fn of_request(site: &Site, config: &Value, name: &str) -> (Option<i32>, String) {
    let planned = plan(site, config, &["--drain-request", name]).await;
    let text = [planned.stdout, planned.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (planned.status.code(), text.concat())
}

fn name(id: &str) -> String {
    format!("nvsentinel/drain-{NODE}-{id}")
}

async fn site() -> Site {
    let site = Site::start().await;
    for (name, gpu) in [("a", "GPU-1"), ("b", "GPU-2")] {
        site.apply(with_gpu(name, gpu));
    }
    site.pods(&["c"]);
    site
}

#[tokio::test]
async fn a_request_is_planned_as_the_driver_then_drains_for_it() {
    let site = site().await;
    site.create("1", reset("GPU-1")).await;
    let (code, text) = of_request(&site, &config(policy(), Some(json!({}))), &name("1")).await;
    assert_eq!(code, Some(0), "{text}");
    let head = format!(
        "A drain of node {NODE} for DrainRequest {} would go like this",
        name("1")
    );
    assert!(text.starts_with(&head), "{text}");
    let leaves = |pod: &str| text.contains(&format!("  evict            default/{pod}  "));
    assert_eq!(["a", "b", "c"].map(leaves), [true, false, false], "{text}");
    assert!(site.evictions().is_empty());
    let _driver = site.driver(json!({}), policy()).await;
    site.becomes("1", "DrainComplete", "True Drained").await;
    assert_eq!(site.pod_names(), ["b", "c"]);
}

#[tokio::test]
async fn requests_that_the_drain_would_also_serve_are_in_the_plan() {
    let site = site().await;
    for (id, gpu) in [("1", "GPU-1"), ("2", "GPU-2")] {
        site.create(id, reset(gpu)).await;
    }
    let output = ["--output", "json", "--drain-request", &name("2")];
    let planned = plan(&site, &config(policy(), Some(json!({}))), &output).await;
    let planned: Value = serde_json::from_slice(&planned.stdout).unwrap();
    assert_eq!(
        planned["drainRequests"],
        json!([name("1"), name("2")]),
        "{planned:#}"
    );
    let decisions = planned["plan"]["decisions"].as_array().unwrap();
    let evicted = decisions.iter().filter(|decision| decision["verdict"] == "evict");
    assert_eq!(evicted.count(), 2, "{planned:#}");
}

#[tokio::test]
async fn with_partial_only_the_pods_leave_that_the_request_names() {
    let site = site().await;
    site.create("1", json!({"podsToDrain": {"default": ["c"]}})).await;
    site.create("2", json!({"podsToDrain": {}})).await;
    site.create("3", json!({"podsToDrain": 3})).await;
    let partial = config(json!([]), Some(json!({"partial": true})));
    let (code, text) = of_request(&site, &partial, &name("1")).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("evict            default/c"), "{text}");
    assert_eq!(text.matches("  evict  ").count(), 1, "{text}");
    for (id, answer) in [
        ("2", "DrainComplete with reason NoPods"),
        (
            "3",
            "DrainFailed with reason InvalidRequest: spec.podsToDrain must be a map",
        ),
    ] {
        let (code, text) = of_request(&site, &partial, &name(id)).await;
        assert_eq!(code, Some(5), "{text}");
        assert!(
            text.contains(&format!("the driver would set its condition {answer}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_request_without_a_drain_is_an_error_that_says_why() {
    let site = site().await;
    let served = config(json!([]), Some(json!({})));
    for (config, request, code, message) in [
        (
            &served,
            "drain-1",
            2,
            "must be NAMESPACE/NAME, such as nvsentinel/drain-node-7",
        ),
        (
            &served,
            "shop/drain-1",
            3,
            "drain-requests.namespaces has nvsentinel",
        ),
        (
            &served,
            "nvsentinel/drain-1",
            4,
            "no drain for DrainRequest nvsentinel/drain-1: it does not exist",
        ),
        (
            &config(json!([]), None),
            "nvsentinel/drain-1",
            3,
            "the section drain-requests is missing from ",
        ),
    ] {
        let (found, text) = of_request(&site, config, request).await;
        assert_eq!(found, Some(code), "{request}: {text}");
        assert!(text.contains(message), "{request}: {text}");
    }
    let mut without_node = json!({});
    without_node["nodeName"] = Value::Null;
    site.create("1", without_node).await;
    let (code, text) = of_request(&site, &served, &name("1")).await;
    assert_eq!(code, Some(5), "{text}");
    assert!(
        text.contains("InvalidRequest: spec.nodeName is missing"),
        "{text}"
    );

    site.create("2", json!({})).await;
    let driver = site.driver(json!({}), json!([])).await;
    site.becomes("2", "DrainComplete", "True Drained").await;
    drop(driver);
    let (code, text) = of_request(&site, &served, &name("2")).await;
    assert_eq!(code, Some(5), "{text}");
    assert!(
        text.contains("its condition DrainComplete is True already"),
        "{text}"
    );
}
