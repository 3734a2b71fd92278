//! Every overlay, and the chart, one after the other on one real API server: applied unchanged, its driver run in its
//! pod's container, and a node drained with the overlay's special settings.

use std::process::Command;

use serde_json::Value;

use crate::charts::tool;
use crate::container::{Container, Image};
use crate::installed::{Installed, deploy, event, until};
use crate::limit::LIMIT;
use crate::machine::Machine;
use crate::{ALONE, cloud, skip, slurm};

/// The kinds of objects to delete between overlays: permissions above all. Namespace and CRDs stay.
const OURS: &str = "daemonsets,configmaps,resourcequotas,roles,rolebindings,clusterroles,clusterrolebindings,\
    validatingadmissionpolicies,validatingadmissionpolicybindings";
const SLM: &str = "lifecycle.k8s.io";

/// As GKE has it: pods of these priority classes need a quota in their namespace.
const LIMITED_PRIORITIES: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: ResourceQuota
    configuration:
      apiVersion: apiserver.config.k8s.io/v1
      kind: ResourceQuotaConfiguration
      limitedResources:
        - resource: pods
          matchScopes:
            - scopeName: PriorityClass
              operator: In
              values: [system-node-critical, system-cluster-critical]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_overlay_and_the_chart_drain_a_node() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let image = Image::gathered();
    // One node for each, and room for the evicted pods.
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("admission.yaml");
    std::fs::write(&limits, LIMITED_PRIORITIES).unwrap();
    let limits = format!("--admission-control-config-file={}", limits.display());
    let options = [
        "--nodes",
        "8",
        "--eviction-request",
        "--apiserver-arg",
        limits.as_str(),
    ];
    let installed = Installed::bare(&options).await;
    own_group(&installed, &image).await;
    restart_without_eviction_requests(&installed);
    installed.testbed.install("lifecycle.yaml");
    slm(&installed, &image).await;
    non_root(&installed, &image).await;
    slurm::drains(&installed, &image, "node-3").await;
    cloud::drains(&installed, &image, "node-4").await;
    chart(&installed, &image).await;
}

/// The API server reserves the group, and serves other kinds in it.
async fn own_group(installed: &Installed, image: &Image) {
    installed.testbed.install("lifecycle.scupper.dev.yaml");
    apply(installed, "own-group");
    let machine = Machine::up(installed, image, "node-0", false);
    let driver = machine.run("scupper").await;
    let mut drain_event = event("drain-node-0", "drain.slm.k8s.io", "node-0");
    drain_event["apiVersion"] = "lifecycle.scupper.dev/v1alpha1".into();
    drains(installed, &driver, &drain_event).await;
    let own = installed
        .get("/apis/lifecycle.scupper.dev/v1alpha1/lifecycletransitions")
        .await;
    assert_eq!(own["items"].as_array().unwrap().len(), 2, "{own}");
}

fn restart_without_eviction_requests(installed: &Installed) {
    let group = || {
        installed
            .testbed
            .kubectl(&["get", "--raw", &format!("/apis/{SLM}/v1alpha1")])
    };
    assert!(group().contains("evictionrequests"));
    for action in [&["kill", "--no-eviction-request"][..], &["start"]] {
        installed
            .testbed
            .run(&["daemon"], &[&["kube-apiserver"], action].concat());
    }
}

/// A kubelet that knows SLM claims the event and calls the driver, which has no permission to claim events.
async fn slm(installed: &Installed, image: &Image) {
    apply(installed, "slm");
    let machine = Machine::up(installed, image, "node-1", true);
    let driver = machine.run("scupper").await;
    drains(
        installed,
        &driver,
        &event("drain-node-1", "drain.slm.k8s.io", "node-1"),
    )
    .await;
    let finished = [("drain-node-1".to_owned(), "Succeeded".to_owned())];
    let reported = |record: &scupper_simulator::kubelet::Record| record.finished() == finished;
    machine.kubelet.wait_for(reported, LIMIT).await.unwrap();
    assert_eq!(
        machine.kubelet.record().reasons(),
        ["drain-started", "drain-complete"]
    );
    assert!(
        !installed
            .granted()
            .await
            .contains(&["patch", SLM, "lifecycleevents/status"].map(str::to_owned))
    );
}

/// Without root, and without anything of the node.
async fn non_root(installed: &Installed, image: &Image) {
    apply(installed, "non-root");
    let machine = Machine::up(installed, image, "node-2", false);
    let driver = machine.run("scupper").await;
    drains(
        installed,
        &driver,
        &event("drain-node-2", "drain.slm.k8s.io", "node-2"),
    )
    .await;
    assert_eq!(driver.status("Uid:"), "65532\t65532\t65532\t65532");
    // It registers with no kubelet.
    assert!(machine.kubelet.attempts().is_empty());
    let namespace = installed.get("/api/v1/namespaces/scupper").await;
    assert_eq!(
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
        "restricted"
    );
}

/// In another namespace, to which account, permissions, limits and leases follow.
async fn chart(installed: &Installed, image: &Image) {
    remove(installed);
    let home = tempfile::tempdir().unwrap();
    let mut helm = Command::new(tool("helm"));
    let helm = helm
        .args(["install", "scupper", "--namespace=drains", "--create-namespace"])
        .arg(deploy().join("helm/scupper"))
        .env("HOME", home.path())
        .env("KUBECONFIG", installed.testbed.kubeconfig());
    let output = helm.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !said.to_lowercase().contains("warn"),
        "{said}"
    );
    let machine = Machine::up(installed, image, "node-5", false);
    let driver = machine.run("drains").await;
    drains(
        installed,
        &driver,
        &event("drain-node-5", "drain.slm.k8s.io", "node-5"),
    )
    .await;
}

/// Nothing of the previous overlay is left; the server has no complaint about this one.
pub(crate) fn apply(installed: &Installed, overlay: &str) {
    remove(installed);
    let folder = deploy().join("overlays").join(overlay);
    kubectl(
        installed,
        &["apply", "--validate=strict", "-k", folder.to_str().unwrap()],
    );
    kubectl(
        installed,
        &["wait", "--for=condition=Established", "crd", "--all"],
    );
}

fn remove(installed: &Installed) {
    let of_ours = ["--selector", "app.kubernetes.io/name=scupper", "--all-namespaces"];
    kubectl(
        installed,
        &[&["delete", OURS, "--wait=false"][..], &of_ours].concat(),
    );
}

/// A warning is a failure.
pub(crate) fn kubectl(installed: &Installed, args: &[&str]) {
    let output = installed.testbed.kubectl_command(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !said.contains("Warning"),
        "{args:?}: {said}"
    );
}

/// Two pods behind a budget that allows one eviction at a time.
pub(crate) fn work(installed: &Installed, node: &str) {
    let owned = [
        "--owner",
        "deployment",
        "--count",
        "2",
        "--pdb",
        "1",
        "--takes",
        "0.2",
    ];
    let of = format!("shop-{node}");
    installed
        .testbed
        .make_pods(&[&owned[..], &["--node", node, "--namespace", &of]].concat());
}

/// The whole path: pods on the node, the drain request, and its end.
async fn drains(installed: &Installed, driver: &Container, drain_event: &Value) {
    work(installed, drain_event["spec"]["bindingNode"].as_str().unwrap());
    installed.create(std::slice::from_ref(drain_event));
    is_drained(installed, driver, drain_event).await;
}

/// The request is carried out, and the driver reports no problem.
pub(crate) async fn is_drained(installed: &Installed, driver: &Container, drain_event: &Value) {
    let text = |pointer: &str| drain_event.pointer(pointer).unwrap().as_str().unwrap();
    let (node, name) = (text("/spec/bindingNode"), text("/metadata/name"));
    let path = format!("/apis/{}/lifecycleevents/{name}", text("/apiVersion"));
    let of = format!("shop-{node}");
    let over = async || {
        installed.get(&path).await["code"] == 404
            && installed.condition(node, "Drained").await == "True"
            && installed.pods(&of, node).await == 0
    };
    until(over, || format!("{node} is not drained:\n{}", driver.log())).await;
    // The example's cloud does not exist at first, and then has one compute host: openstack.wasm's check reports both.
    let check = "policy openstack: check of ";
    let log = driver.log();
    for line in log.lines().filter(|line| !line.contains(check)) {
        for complaint in ["cannot ", "the lease of", "ERROR"] {
            assert!(!line.contains(complaint), "{complaint}: {log}");
        }
    }
}
