//! The overlay `nvsentinel` on a real API server: a driver with a token of its pod answers the request for its node, and
//! can answer no other.

use std::path::{Path, PathBuf};
use std::process::Command;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::installed::{Driver, Installed, ask, client, deploy, until};
use crate::testbed::Testbed;
use crate::{ALONE, skip};

const REQUESTS: &str = "/apis/nvsentinel.nvidia.com/v1alpha1/namespaces/nvsentinel/drainrequests";

/// As node-drainer makes it.
fn request(node: &str) -> Value {
    json!({
        "apiVersion": "nvsentinel.nvidia.com/v1alpha1", "kind": "DrainRequest",
        "metadata": {"name": format!("drain-{node}-68a1"), "namespace": "nvsentinel",
            "labels": {"nvsentinel.nvidia.com/node-name": node}},
        "spec": {"nodeName": node, "checkName": "GpuXidError", "errorCode": ["48"], "podsToDrain": {"shop": ["cart"]}},
    })
}

fn complete(message: &str) -> Value {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "ByHand", "message": message,
            "lastTransitionTime": "2026-09-01T10:00:00Z"})
    };
    let kind = if message.is_empty() {
        "Foreign"
    } else {
        "DrainComplete"
    };
    json!({"status": {"conditions": [condition(kind)]}})
}

/// The overlay on its API server, whose node-0 fault-quarantine has cordoned, and the driver of that node.
struct Site {
    installed: Installed,
    driver: Driver,
    kubeconfig: PathBuf,
    config: String,
}

async fn site() -> Site {
    let installed = Installed::bare(&["--nodes", "3"]).await;
    let testbed = &installed.testbed;
    testbed.install("drainrequests.yaml");
    // NVSentinel's own CRD cannot select by this field.
    let unselectable = r#"[{"op": "remove", "path": "/spec/versions/0/selectableFields"}]"#;
    let crd = "crd/drainrequests.nvsentinel.nvidia.com";
    testbed.kubectl(&["patch", crd, "--type=json", "--patch", unselectable]);
    testbed.kubectl(&["create", "namespace", "nvsentinel"]);
    let overlay = deploy().join("overlays/nvsentinel");
    testbed.kubectl(&["apply", "-k", overlay.to_str().unwrap()]);
    testbed.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]);
    let rolled_out = ["rollout", "status", "daemonset/scupper", "--timeout=60s"];
    testbed.kubectl(&[&["--namespace", "scupper"][..], &rolled_out].concat());
    installed.enforces_policies().await;
    shop(testbed, &["--owner", "deployment", "--count", "3"]);
    testbed.kubectl(&["cordon", "node-0"]);
    let config = format!("--config={}", overlay.join("scupper.yaml").display());
    let kubeconfig = installed.kubeconfig_on("node-0").await;
    let driver = Driver::start(&installed, "node-0", &kubeconfig, &[&config]).await;
    Site {
        installed,
        driver,
        kubeconfig,
        config,
    }
}

/// Pods of a shop on node-0.
fn shop(testbed: &Testbed, pods: &[&str]) {
    testbed.make_pods(&[&["--node", "node-0", "--namespace", "shop"][..], pods].concat());
}

/// Instead of the pods that are there, one on node-0 that its budget holds.
fn shop_behind_a_budget(testbed: &Testbed) {
    // It comes to node-0 only, however late the scheduler learns that it is in service.
    testbed.kubectl(&["cordon", "node-1", "node-2"]);
    testbed.kubectl(&["uncordon", "node-0"]);
    let gone = ["--all", "--namespace", "shop", "--cascade=foreground"];
    testbed.kubectl(&[&["delete", "deployments"][..], &gone].concat());
    shop(testbed, &["--owner", "deployment", "--count", "1", "--pdb", "1"]);
    testbed.kubectl(&["cordon", "node-0"]);
}

#[tokio::test]
async fn a_drain_request_is_answered_with_the_permissions_of_the_overlay() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let Site {
        installed,
        driver,
        kubeconfig,
        config,
    } = site().await;
    let testbed = &installed.testbed;
    installed.create(&["node-0", "node-1", "node-7"].map(request));
    let is_complete = async || condition(&installed, "68a1", "DrainComplete").await == "True";
    until(is_complete, || driver.log()).await;
    assert_eq!(installed.pods("shop", "node-0").await, 0);
    let table = testbed.kubectl(&["--namespace", "nvsentinel", "get", "drainrequests"]);
    let answered = table
        .lines()
        .find(|line| line.contains("drain-node-0-68a1"))
        .unwrap();
    let columns: Vec<_> = answered.split_whitespace().collect();
    assert_eq!(
        columns[1..5],
        ["node-0", "GpuXidError", "False", "True"],
        "{table}"
    );
    let own = client(&kubeconfig).await;
    for (node, body, expected) in [
        ("node-0", json!({"status": {"conditions": []}}), StatusCode::OK),
        ("node-0", complete(""), StatusCode::FORBIDDEN),
        ("node-1", complete("not ours"), StatusCode::FORBIDDEN),
    ] {
        let path = format!("{REQUESTS}/drain-{node}-68a1/status");
        let (code, answer) = ask(&own, Method::PATCH, &path, &body).await;
        assert_eq!(code, expected, "{node}: {answer}");
    }
    let found = doctor(&kubeconfig, &config);
    let served = "the driver serves drainrequests.nvsentinel.nvidia.com of the namespaces nvsentinel";
    assert!(found.contains(served), "{found}");
    assert!(!found.contains("needed to serve DrainRequests"), "{found}");
    let lost = "no driver serves these: nvsentinel/drain-node-7-68a1 names node-7, which does not exist";
    assert!(found.contains(lost), "{found}");
    let role = ["delete", "rolebinding", "scupper-drain-requests"];
    testbed.kubectl(&[&["--namespace", "nvsentinel"][..], &role].concat());
    let is_missed = async || {
        doctor(&kubeconfig, &config).contains(
            "no right to patch drainrequests/status.nvsentinel.nvidia.com in the namespace nvsentinel",
        )
    };
    until(is_missed, || "the doctor names no right".to_owned()).await;
}

/// Node-drainer's part, for one health event on node-0.
struct NodeDrainer<'a> {
    site: &'a Site,
    event: &'static str,
}

impl NodeDrainer<'_> {
    fn name(&self) -> String {
        format!("drain-node-0-{}", self.event)
    }

    /// From a template, after no request with the label of the node was found.
    async fn creates(&self) {
        let mut request = request("node-0");
        request["metadata"]["name"] = self.name().into();
        request["spec"]["healthEventID"] = self.event.into();
        let of_node = format!("{REQUESTS}?labelSelector=nvsentinel.nvidia.com/node-name=node-0");
        assert_eq!(self.site.installed.get(&of_node).await["items"], json!([]));
        self.site.installed.create(&[request]);
    }

    /// It reads only the condition that its configuration names, and waits without a limit.
    async fn sees(&self, kind: &str) {
        let is_true = async || condition(&self.site.installed, self.event, kind).await == "True";
        until(is_true, || self.site.driver.log()).await;
    }

    /// The request is gone at once: no finalizer keeps it.
    async fn deletes(&self) {
        let path = format!("{REQUESTS}/{}", self.name());
        let (code, answer) = ask(&self.site.installed.admin, Method::DELETE, &path, &json!({})).await;
        assert_eq!(
            (code, &answer["status"]),
            (StatusCode::OK, &json!("Success")),
            "{answer}"
        );
    }
}

/// The status of a request's condition; empty: the request does not have it.
async fn condition(installed: &Installed, event: &str, kind: &str) -> String {
    let found = installed.get(&format!("{REQUESTS}/drain-node-0-{event}")).await;
    let conditions = found["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    found
        .map(|condition| condition["status"].as_str().unwrap().to_owned())
        .unwrap_or_default()
}

/// Each health event of a node is a request, and a drain, of its own.
#[tokio::test]
async fn node_drainer_gets_an_answer_for_each_event_of_a_node() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let site = site().await;
    let event = |event| NodeDrainer { site: &site, event };
    let (first, second, third) = (event("68a1"), event("68b2"), event("68c3"));
    let testbed = &site.installed.testbed;
    first.creates().await;
    first.sees("DrainComplete").await;
    assert_eq!(site.installed.pods("shop", "node-0").await, 0);
    first.deletes().await;

    // The node was in service for a while, and a pod of one replica came, which a budget keeps.
    shop_behind_a_budget(testbed);
    second.creates().await;
    second.sees("DrainInProgress").await;
    assert_ne!(
        condition(&site.installed, second.event, "DrainComplete").await,
        "True"
    );
    second.deletes().await;
    let is_cancelled = async || site.installed.condition("node-0", "DrainInProgress").await == "False";
    until(is_cancelled, || site.driver.log()).await;
    assert_eq!(site.installed.pods("shop", "node-0").await, 1);

    third.creates().await;
    third.sees("DrainInProgress").await;
    let budgets = ["delete", "poddisruptionbudgets", "--all", "--namespace", "shop"];
    testbed.kubectl(&budgets);
    third.sees("DrainComplete").await;
    assert_eq!(site.installed.pods("shop", "node-0").await, 0);
    third.deletes().await;
    let node = site.installed.get("/api/v1/nodes/node-0").await;
    assert_eq!(
        node["spec"]["unschedulable"], true,
        "the cordon is fault-quarantine's"
    );
}

/// Its policy lets a driver write nothing else to a request of another node.
#[tokio::test]
async fn a_driver_takes_back_that_it_drains_for_a_request_that_names_another_node_now() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let site = site().await;
    let (installed, driver) = (&site.installed, &site.driver);
    shop_behind_a_budget(&installed.testbed);
    installed.create(&[request("node-0")]);
    let drains = async || condition(installed, "68a1", "DrainInProgress").await == "True";
    until(drains, || driver.log()).await;
    let path = format!("{REQUESTS}/drain-node-0-68a1");
    let draining = installed.get(&path).await["status"].clone();
    let moved = json!({"spec": {"nodeName": "node-1"}});
    let (code, answer) = ask(&installed.admin, Method::PATCH, &path, &moved).await;
    assert_eq!(code, StatusCode::OK, "{answer}");
    let is_corrected = async || condition(installed, "68a1", "DrainInProgress").await == "False";
    until(is_corrected, || driver.log()).await;
    let corrected = installed.get(&path).await["status"].clone();
    assert_eq!(corrected["conditions"][0]["reason"], "NodeChanged", "{corrected}");

    let with_message = |status: &Value, message: &str| {
        let mut status = status.clone();
        status["conditions"][0]["message"] = message.into();
        status
    };
    let theirs = with_message(&draining, "the driver of node node-1 drains it");
    let of_another = with_message(&corrected, "the request is no longer for node node-2");
    let mut with_answer = corrected.clone();
    let conditions = with_answer["conditions"].as_array_mut().unwrap();
    conditions.push(complete("ours")["status"]["conditions"][0].clone());
    let own = client(&site.kubeconfig).await;
    let path = format!("{path}/status");
    for (before, after, expected) in [
        (&corrected, &draining, StatusCode::FORBIDDEN),
        (&draining, &with_answer, StatusCode::FORBIDDEN),
        (&draining, &of_another, StatusCode::FORBIDDEN),
        (&theirs, &corrected, StatusCode::FORBIDDEN),
        (&draining, &corrected, StatusCode::OK),
    ] {
        let (code, answer) = ask(&installed.admin, Method::PATCH, &path, &json!({"status": before})).await;
        assert_eq!(code, StatusCode::OK, "{answer}");
        let (code, answer) = ask(&own, Method::PATCH, &path, &json!({"status": after})).await;
        assert_eq!(code, expected, "{before} -> {after}: {answer}");
    }
}

fn doctor(kubeconfig: &Path, config: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command
        .args(["doctor", "--node", "node-0", config])
        .env("KUBECONFIG", kubeconfig);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}
