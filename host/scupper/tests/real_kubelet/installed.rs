//! The image as `make image` makes it, run by the DaemonSet of `deploy/` in containers of the real kubelet.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use xtask::policies;
use xtask::workspace::Workspace;

use crate::limit::LIMIT;
use crate::testbed::{NODE, Testbed, until};
use crate::workload::Workload;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
const EVENT: &str = "drain-real-0";

#[tokio::test]
async fn the_image_drains_its_node_and_a_rolling_update_in_the_middle_loses_nothing() {
    let Some(testbed) = Testbed::up("image") else {
        return;
    };
    testbed.import(&image(testbed.folder()));
    let client = testbed.client().await;
    let workload = Workload::start(&testbed, &client).await;
    let overlay = overlay(testbed.folder());
    testbed.kubectl(&["apply", "-k", overlay.to_str().unwrap()]);
    rolled_out(&testbed).await;
    let first = driver(&testbed);

    let event = json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent", "metadata": {"name": EVENT},
        "spec": {"transitionName": "drain.slm.k8s.io", "bindingNode": NODE},
    });
    testbed.apply("event", &event.to_string());
    let log = || scupper(&testbed, &["logs", "daemonset/scupper"]);
    until(LIMIT, "the first driver evicts", async || {
        log().contains(" evict  ")
    })
    .await;
    assert_eq!(
        claim(&testbed),
        "Claimed",
        "over before it could be interrupted:\n{}",
        log()
    );
    scupper(&testbed, &["rollout", "restart", "daemonset/scupper"]);
    rolled_out(&testbed).await;
    assert_ne!(driver(&testbed), first);
    // A drain that has ended removes its event.
    let over = |log: &str| log.lines().any(|line| line.contains(" end  "));
    until(LIMIT, "the next driver ends the drain", async || over(&log())).await;
    assert!(log().contains(" Drained in "), "{}", log());
    workload.check_drained(&client).await;
    let cordoned = ["get", "node", NODE, "-o", "jsonpath={.spec.unschedulable}"];
    assert_eq!(testbed.kubectl(&cordoned), "true");
}

/// `make image`, with the program that was built for the tests.
fn image(folder: &Path) -> PathBuf {
    let made = folder.join("policies");
    let workspace = Workspace::read().unwrap();
    policies::build(&workspace, &policies::of_image(&workspace), Some(&made)).unwrap();
    let image = folder.join("scupper.tar");
    let script = Command::new(format!("{DEPLOY}/image"))
        .args([&made, &image])
        .arg(concat!("localhost/scupper:", env!("CARGO_PKG_VERSION")))
        .arg(env!("CARGO_BIN_EXE_scupper"))
        .output()
        .unwrap();
    assert!(
        script.status.success(),
        "{}",
        String::from_utf8_lossy(&script.stderr)
    );
    image
}

/// `deploy/overlays/self-claim` for a kubelet whose root is elsewhere, on a cluster without services.
fn overlay(folder: &Path) -> PathBuf {
    let overlay = folder.join("overlay");
    std::fs::create_dir(&overlay).unwrap();
    let up = "../".repeat(overlay.components().count() - 1);
    let base = std::fs::canonicalize(format!("{DEPLOY}/overlays/self-claim")).unwrap();
    let on_the_node = |name: &str, path: &str| {
        let path = folder.join(path);
        json!({"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}})
    };
    let patch = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "scupper", "namespace": "scupper"},
        "spec": {"template": {"spec": {
            "containers": [{"name": "scupper", "env": [
                {"name": "KUBERNETES_SERVICE_HOST", "value": "10.88.0.1"},
                {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"},
            ]}],
            "volumes": [
                on_the_node("plugins", "kubelet/plugins"),
                on_the_node("plugins-registry", "kubelet/plugins_registry"),
                on_the_node("node-policies", "node-policies"),
                on_the_node("state", "state"),
            ],
        }}},
    });
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [format!("{up}{}", base.strip_prefix("/").unwrap().display())],
        "patches": [{"patch": patch.to_string()}],
    });
    std::fs::write(overlay.join("kustomization.yaml"), kustomization.to_string()).unwrap();
    overlay
}

fn scupper(testbed: &Testbed, arguments: &[&str]) -> String {
    testbed.kubectl(&[&["--namespace", "scupper"], arguments].concat())
}

async fn rolled_out(testbed: &Testbed) {
    let status = ["rollout", "status", "daemonset/scupper", "--watch=false"];
    until(LIMIT, "the DaemonSet is rolled out", async || {
        scupper(testbed, &status).contains("successfully rolled out")
    })
    .await;
}

/// The pod of the driver, by its name.
fn driver(testbed: &Testbed) -> String {
    scupper(testbed, &["get", "pods", "--output", "name"])
}

fn claim(testbed: &Testbed) -> String {
    let status = "jsonpath={.status.claimStatus}";
    testbed.kubectl(&["get", "lifecycleevent", EVENT, "-o", status])
}
