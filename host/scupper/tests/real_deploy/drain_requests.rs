//! The overlay `nvsentinel` on a real API server: a driver with a token of its pod answers the request for its node, and
//! can answer no other.

use std::path::Path;
use std::process::Command;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::installed::{Driver, Installed, ask, client, deploy, until};
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

#[tokio::test]
async fn a_drain_request_is_answered_with_the_permissions_of_the_overlay() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
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
    testbed.make_pods(&[
        "--owner",
        "deployment",
        "--count",
        "3",
        "--node",
        "node-0",
        "--namespace",
        "shop",
    ]);
    testbed.kubectl(&["cordon", "node-0"]);
    let config = format!("--config={}", overlay.join("scupper.yaml").display());
    let kubeconfig = installed.kubeconfig_on("node-0").await;
    let driver = Driver::start(&installed, "node-0", &kubeconfig, &[&config]).await;
    installed.create(&[request("node-0"), request("node-1")]);
    let path = format!("{REQUESTS}/drain-node-0-68a1");
    let is_complete = async || {
        let found = installed.get(&path).await;
        let conditions = found["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions
            .iter()
            .any(|it| it["type"] == "DrainComplete" && it["status"] == "True")
    };
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
    let role = ["delete", "rolebinding", "scupper-drain-requests"];
    testbed.kubectl(&[&["--namespace", "nvsentinel"][..], &role].concat());
    let is_missed = async || {
        doctor(&kubeconfig, &config).contains(
            "no right to patch drainrequests/status.nvsentinel.nvidia.com in the namespace nvsentinel",
        )
    };
    until(is_missed, || "the doctor names no right".to_owned()).await;
}

fn doctor(kubeconfig: &Path, config: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command
        .args(["doctor", "--node", "node-0", config])
        .env("KUBECONFIG", kubeconfig);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}
