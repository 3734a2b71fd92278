//! A policy that asks about the cluster: without the rights its drain waits and says which, with the components it goes on.

use std::process::Command;

use serde_json::json;

use crate::guests::guest;
use crate::installed::{Driver, Installed, event, kustomization, until};
use crate::{ALONE, skip};

/// The API server's words, the doctor's, and the component that helps, in the order in which the policy asks. The node has
/// pods of a DaemonSet and of a ReplicaSet, in no certain order.
const LACKING: [[&str; 3]; 4] = [
    [
        "cannot get resource \"namespaces\"",
        "no right to get namespaces,",
        "facts/namespaces",
    ],
    [
        "sets\" in API group \"apps\" in the namespace",
        "no right to get replicasets.apps,",
        "facts/owners",
    ],
    [
        "cannot get resource \"resourceclaims\"",
        "no right to get resourceclaims.resource.k8s.io,",
        "facts/resources",
    ],
    [
        "cannot get resource \"persistentvolumeclaims\"",
        "no right to get persistentvolumeclaims,",
        "facts/volumes",
    ],
];

#[tokio::test]
async fn a_policy_that_asks_needs_the_components_of_its_facts() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let installed = Installed::up("self-claim", &["--nodes", "1"]).await;
    let node = "node-0";
    installed.create(&[json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "cart", "namespace": "default", "labels": {"tier": "front"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "cart"}}, "template": {
                "metadata": {"labels": {"app": "cart"}},
                "spec": {"containers": [{"name": "main", "image": "none"}]}}}})]);
    let set = installed
        .get("/apis/apps/v1/namespaces/default/replicasets/cart")
        .await;
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart", "uid": set["metadata"]["uid"],
        "controller": true});
    let claim = json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}});
    installed.create(&[
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "gpus", "namespace": "default"}, "spec": claim}),
    ]);
    installed.create(&[json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "cart-1", "namespace": "default", "ownerReferences": [owner],
                "finalizers": ["example.com/kept"]},
            "spec": {"nodeName": node, "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpus"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                "containers": [{"name": "main", "image": "none"}]}})]);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("scupper.yaml");
    let policy = json!({
        "name": "asks", "module": guest("asks"),
        "config": {"ask": "request\nbudgets\nnamespace default\nowners\nresources\nvolumes\npeers", "then": "go on"},
        "grants": {"facts": ["request", "namespaces", "budgets", "owners", "resources", "volumes", "peers"]},
    });
    let whole = json!({"apiVersion": "scupper.dev/v1alpha1", "kind": "Configuration", "policies": [policy]});
    std::fs::write(&config, whole.to_string()).unwrap();
    let config = format!("--config={}", config.display());
    let kubeconfig = installed.kubeconfig_on(node).await;
    let driver = Driver::start(
        &installed,
        node,
        &kubeconfig,
        &[&config, "--scope=node", "--force"],
    )
    .await;
    let offered = format!("drain.slm.k8s.io.{node}");
    let path = format!("/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions/{offered}");
    let is_offered = async || installed.get(&path).await["kind"] == "LifecycleTransition";
    until(is_offered, || driver.log()).await;
    installed.create(&[event("drain-asks", &offered, node)]);
    let doctor = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
        command.args(["doctor", "--node", node, &config]);
        let output = command.env("KUBECONFIG", &kubeconfig).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for [refused, lacking, component] in LACKING {
        let says = async || driver.log().replace("\\\"", "\"").contains(refused);
        until(says, || format!("{refused}:\n{}", driver.log())).await;
        let said = doctor();
        assert!(said.contains(lacking), "{said}");
        assert!(said.contains("deploy/components/facts"), "{said}");
        let path = format!("/api/v1/nodes/{node}");
        assert_ne!(
            installed.get(&path).await["spec"]["unschedulable"],
            true,
            "nothing has changed yet"
        );
        let whole = kustomization("self-claim", &[component]);
        installed
            .testbed
            .kubectl(&["apply", "-k", whole.path().to_str().unwrap()]);
    }
    let path = format!("/api/v1/nodes/{node}");
    let cordoned = async || installed.get(&path).await["spec"]["unschedulable"] == true;
    until(cordoned, || driver.log()).await;
    let said = doctor();
    assert!(!said.contains("for what its policies ask"), "{said}");
}
