//! Every trigger with the permissions of the manifests: a LifecycleEvent, a cordon, and `scupper drain` beside the
//! driver.

use std::process::Command;

use serde_json::json;

use crate::installed::{Driver, Installed, event, transition, until};
use crate::{ALONE, skip};

#[tokio::test]
async fn every_trigger_drains_with_the_permissions_of_the_manifests() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    // The fourth node takes the evicted pods of the others.
    let installed = Installed::up("self-claim", &["--nodes", "4"]).await;
    for node in 0..3 {
        let (on, of) = (format!("node-{node}"), format!("shop-{node}"));
        let owned = ["--owner", "deployment", "--count", "4", "--pdb", "3"];
        let there = ["--node", &on, "--namespace", &of, "--takes", "0.2"];
        installed.testbed.make_pods(&[&owned[..], &there].concat());
    }
    // Left by drivers that ran with other options: one is to be changed, one to be removed.
    installed.create(&[
        transition("drain.slm.k8s.io", &json!({"allNodes": true}), "9m"),
        transition("drain.slm.k8s.io.node-0", &json!({"nodeName": "node-0"}), "5m"),
    ]);
    let mut drivers = Vec::new();
    for node in ["node-0", "node-1", "node-2"] {
        let kubeconfig = installed.kubeconfig_on(node).await;
        drivers.push(Driver::start(&installed, node, &kubeconfig, &[]).await);
    }
    let logs = || {
        drivers
            .iter()
            .map(Driver::log)
            .collect::<Vec<_>>()
            .join("\n----\n")
    };
    drains(&installed, &logs).await;
    gives_back(&installed, &logs).await;
    let stale = "/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions/drain.slm.k8s.io.node-0";
    let gone = async || installed.get(stale).await["code"] == 404;
    until(gone, || format!("{stale} is still there:\n{}", logs())).await;
    assert!(!logs().contains("cannot "), "{}", logs());
}

async fn drains(installed: &Installed, logs: &impl Fn() -> String) {
    installed.create(&[event("drain-node-0", "drain.slm.k8s.io", "node-0")]);
    let labelled = ["label", "node", "node-1", "scupper.dev/drain-on-cordon=true"];
    installed.testbed.kubectl(&labelled);
    installed.testbed.kubectl(&["cordon", "node-1"]);
    scupper(
        installed,
        &["drain", "node-2", "--ignore-daemonsets", "--timeout=80s"],
    );
    for node in 0..3 {
        let (on, of) = (format!("node-{node}"), format!("shop-{node}"));
        let drained = async || {
            installed.condition(&on, "Drained").await == "True" && installed.pods(&of, &on).await == 0
        };
        until(drained, || format!("{on} is not drained:\n{}", logs())).await;
        assert_eq!(
            installed.pods("scupper", &on).await,
            1,
            "its driver stays on {on}"
        );
    }
}

async fn gives_back(installed: &Installed, logs: &impl Fn() -> String) {
    installed.create(&[event("back-node-0", "drain.slm.k8s.io-uncordon", "node-0")]);
    installed.testbed.kubectl(&["uncordon", "node-1"]);
    scupper(installed, &["uncordon", "node-2"]);
    for node in ["node-0", "node-1", "node-2"] {
        let path = format!("/api/v1/nodes/{node}");
        let back = async || {
            installed.condition(node, "Drained").await == "False"
                && installed.get(&path).await["spec"]["unschedulable"].is_null()
        };
        until(back, || format!("{node} is not uncordoned:\n{}", logs())).await;
    }
    let events = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents";
    let none = async || {
        installed.get(events).await["items"]
            .as_array()
            .unwrap()
            .is_empty()
    };
    until(none, || format!("events are left:\n{}", logs())).await;
}

/// With the admin's permissions, as at a terminal.
fn scupper(installed: &Installed, args: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    let command = command
        .args(args)
        .env("KUBECONFIG", installed.testbed.kubeconfig());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}
