//! The overlay `slurm`: Slurm's nodes are pods, whose conditions its operator writes. The test plays the operator.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::container::{Container, Image};
use crate::installed::{Installed, event, until};
use crate::machine::Machine;
use crate::overlays::{apply, is_drained, kubectl, work};

const REASON: &str = "nodeset.slinky.slurm.net/node-cordon-reason";
const WORKERS: [&str; 2] = ["gpu-0", "gpu-1"];

/// The workers are evicted last, once Slurm reports their jobs as ended.
pub(crate) async fn drains(installed: &Installed, image: &Image, node: &str) {
    apply(installed, "slurm");
    kubectl(installed, &["label", "node", node, "scupper.dev/slurm=true"]);
    work(installed, node);
    let slurmd = [
        "--labels",
        "app.kubernetes.io/name=slurmd",
        "--name",
        "gpu",
        "--count",
        "2",
    ];
    let there = ["--node", node, "--namespace", "slurm"];
    installed.testbed.make_pods(&[&slurmd[..], &there].concat());
    set_states(installed, &["Allocated"]).await;
    let machine = Machine::up(installed, image, node, false);
    let driver = machine.run("scupper").await;
    let drain_event = event("drain-for-slurm", "drain.slm.k8s.io", node);
    installed.create(std::slice::from_ref(&drain_event));
    let path = format!("/api/v1/nodes/{node}");
    let reported = async || installed.get(&path).await["spec"]["unschedulable"] == true;
    until(reported, || driver.log()).await;
    let reason = installed.get(&path).await["metadata"]["annotations"][REASON].clone();
    assert_eq!(reason, "[S] [Scupper] drain-for-slurm");
    set_states(installed, &["Allocated", "Drain"]).await;
    let holds = "slurm before-drain, running";
    until(async || driver.log().contains(holds), || driver.log()).await;
    assert_eq!(
        installed.pods(&format!("shop-{node}"), node).await,
        2,
        "{}",
        driver.log()
    );
    set_states(installed, &["Idle", "Drain"]).await;
    is_drained(installed, &driver, &drain_event).await;
    assert_eq!(installed.pods("slurm", node).await, 0);
    last(&driver);
}

fn last(driver: &Container) {
    let log = driver.log();
    let waves: Vec<_> = log.lines().filter(|line| line.contains("  wave  ")).collect();
    assert!(waves.last().unwrap().contains("slurm: 2 pods to evict"), "{log}");
}

/// As slurm-operator does: a condition for each current state, and none for the others.
async fn set_states(installed: &Installed, states: &[&str]) {
    let pods: Api<Pod> = Api::namespaced(installed.admin.clone(), "slurm");
    for name in WORKERS {
        let all = ["Allocated", "Idle", "Drain"].map(|state| {
            let kind = format!("SlurmNodeState{state}");
            if states.contains(&state) {
                json!({"type": kind, "status": "True", "lastTransitionTime": jiff::Timestamp::now().to_string()})
            } else {
                json!({"type": kind, "$patch": "delete"})
            }
        });
        let patch = Patch::Strategic(json!({"status": {"conditions": all}}));
        pods.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}
