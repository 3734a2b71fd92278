//! The API group of the events, and the report of `scupper doctor` about a cluster and its kubelet.

use std::process::Command;

use scupper_simulator::api::{self, Forbidden, Kind, Lifecycle};
use serde_json::{Value, json};

use crate::node::Node;
use crate::rig::{DRIVER, NODE, Rig};

const OWN: &str = "lifecycle.scupper.dev";

fn own_kinds() -> Vec<Kind> {
    vec![
        Kind::custom(OWN, "v1alpha1", "lifecycletransitions", "LifecycleTransition")
            .selectable("spec.nodeName")
            .selectable("spec.driver"),
        Kind::custom(OWN, "v1alpha1", "lifecycleevents", "LifecycleEvent").selectable("spec.bindingNode"),
    ]
}

/// A server that reserves the official group.
fn taken(more: Vec<Kind>) -> api::Options {
    let native = Kind::custom(
        "lifecycle.k8s.io",
        "v1alpha1",
        "evictionrequests",
        "EvictionRequest",
    )
    .namespaced();
    api::Options {
        lifecycle: Lifecycle::NotServed,
        kinds: more.into_iter().chain([native]).collect(),
        ..api::Options::default()
    }
}

/// The doctor's findings, and its exit code.
fn doctor(rig: &Rig, more: &[&str]) -> (Vec<Value>, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_scupper"))
        .args([
            "doctor",
            "--node",
            NODE,
            "--driver-name",
            DRIVER,
            "--output",
            "json",
        ])
        .arg("--kubeconfig")
        .arg(rig.kubeconfig())
        .args(more)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let findings = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (findings.collect(), output.status.code().unwrap())
}

#[track_caller]
fn found(findings: &[Value], subject: &str, state: &str, words: &str) {
    let hit = |it: &&Value| {
        let text = format!("{} {}", it["text"], it["remedy"]);
        it["subject"] == subject && it["state"] == state && text.contains(words)
    };
    assert!(
        findings.iter().any(|it| hit(&it)),
        "{subject} {state} {words}: {findings:#?}"
    );
}

async fn rig(options: api::Options) -> Rig {
    Rig::on(options, |options| options.gate = false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_group_replaces_a_reserved_one() {
    let rig = rig(taken(own_kinds())).await;
    rig.pods(&["a", "b"]);
    let node = Node::in_group(rig, OWN).await;
    let _driver = node.claimer(&[]).await;
    node.apply(json!({
        "apiVersion": format!("{OWN}/v1alpha1"), "kind": "LifecycleEvent", "metadata": {"name": "drain"},
        "spec": {"transitionName": DRIVER, "bindingNode": NODE}, "status": {"claimStatus": "Pending"},
    }));
    assert_eq!(node.end_of("drain").await, "Succeeded");
    assert_eq!(node.statuses("drain"), ["Pending", "Claimed", "Succeeded"]);
    assert!(node.pod_names().is_empty());
    let (findings, code) = doctor(&node, &[]);
    assert_eq!(code, 0, "{findings:#?}");
    found(
        &findings,
        "lifecycle API",
        "ok",
        "(evictionrequests, evictionrequests/status)",
    );
    found(&findings, "transitions", "ok", DRIVER);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_both_are_served_the_official_one_counts() {
    let options = api::Options {
        lifecycle: Lifecycle::Crd,
        kinds: own_kinds(),
        ..api::Options::default()
    };
    let node = Node::with(rig(options).await).await;
    let _driver = node.claimer(&[]).await;
    node.event("drain", DRIVER);
    assert_eq!(node.end_of("drain").await, "Succeeded");
    let (findings, code) = doctor(&node, &[]);
    assert_eq!(code, 0, "{findings:#?}");
    found(&findings, "lifecycle API", "note", "does not look at the other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserved_group_without_ours_is_reported_with_the_remedy() {
    let rig = rig(taken(Vec::new())).await;
    let (findings, code) = doctor(&rig, &[]);
    assert_eq!(code, 8, "{findings:#?}");
    found(
        &findings,
        "lifecycle API",
        "wrong",
        "deploy/crds/lifecycle.scupper.dev.yaml",
    );
    // The CRDs may be installed at any moment: the driver waits, and names the remedy.
    let mut driver = rig.spawn(&[]);
    rig.until("it says what it waits for", || {
        assert!(driver.is_running(), "it ended:\n{}", driver.log());
        driver.log().contains("the driver waits before it can start")
    })
    .await;
    assert!(driver.log().contains("scupper doctor"), "{}", driver.log());
    driver.terminate();
    assert_eq!(driver.ended(crate::rig::LIMIT).await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_asks_the_kubelet_and_leaves_nothing_behind() {
    for (gate, words) in [(false, "does not know SLM"), (true, "knows SLM: it claims")] {
        let rig = Rig::with(|options| options.gate = gate).await;
        let root = rig.kubelet.root().to_owned();
        let asked = ["--kubelet-root", root.to_str().unwrap()];
        let (findings, code) = doctor(&rig, &asked);
        assert_eq!(code, 0, "{findings:#?}");
        found(&findings, "claims", "ok", words);
        for directory in ["plugins", "plugins_registry"] {
            let left = std::fs::read_dir(root.join(directory)).unwrap().count();
            assert_eq!(left, 0, "in {directory}");
        }
        rig.kubelet.stop().await;
    }
    let rig = Rig::start().await;
    let (findings, code) = doctor(&rig, &["--kubelet-root", "/nowhere"]);
    assert_eq!(code, 8, "{findings:#?}");
    found(&findings, "claims", "wrong", "--kubelet-root");
    let (findings, code) = doctor(&rig, &[]);
    assert_eq!(code, 0, "{findings:#?}");
    found(&findings, "claims", "note", "on the node");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_names_the_flags_that_may_override_the_configuration() {
    let rig = Rig::start().await;
    let (findings, _) = doctor(&rig, &[]);
    found(&findings, "overrides", "note", "--config");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scupper.yaml");
    let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n";
    for (drain, state, words) in [
        ("", "ok", "none may widen it"),
        (
            "drain: {allow-overrides: [force, timeout]}\n",
            "ok",
            "may widen it: force, timeout",
        ),
        (
            "drain: {allow-overrides: [disable-eviction]}\n",
            "wrong",
            "config check",
        ),
    ] {
        std::fs::write(&file, format!("{head}{drain}")).unwrap();
        let (findings, code) = doctor(&rig, &["--config", file.to_str().unwrap()]);
        assert_eq!(code, if state == "ok" { 0 } else { 8 }, "{findings:#?}");
        found(&findings, "overrides", state, words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_reports_each_missing_permission() {
    let rig = Rig::with(|options| options.gate = false).await;
    let forbid = |verb: &str, resource: &str| {
        rig.api.set_forbidden(Forbidden {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            ..Forbidden::default()
        });
    };
    forbid("list", "poddisruptionbudgets.policy");
    let (findings, code) = doctor(&rig, &[]);
    assert_eq!(code, 0, "it works without: {findings:#?}");
    found(&findings, "rights", "note", "list poddisruptionbudgets.policy");
    forbid("get", "namespaces");
    let (findings, code) = doctor(&rig, &[]);
    assert_eq!(code, 0, "{findings:#?}");
    let uncertain = "has no right to get namespaces, so a drain never says for certain";
    found(&findings, "rights", "note", uncertain);
    forbid("patch", "lifecycleevents.lifecycle.k8s.io/status");
    let claim = "patch lifecycleevents/status.lifecycle.k8s.io";
    let (findings, code) = doctor(&rig, &[]);
    assert_eq!(code, 0, "the kubelet may claim, and was not asked: {findings:#?}");
    found(&findings, "rights", "note", claim);
    let root = rig.kubelet.root().to_owned();
    let (findings, code) = doctor(&rig, &["--kubelet-root", root.to_str().unwrap()]);
    assert_eq!(code, 8, "{findings:#?}");
    found(&findings, "rights", "wrong", claim);
}

/// Both CRD files are the same, but for the group and the additions for a protected group.
#[test]
fn both_crd_files_have_the_same_content() {
    let read = |file: &str| {
        let path = format!("{}/../../deploy/crds/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let protected =
        |line: &String| line.trim() == "annotations:" || line.contains("api-approved.kubernetes.io");
    let official = read("lifecycle.yaml").into_iter().filter(|line| !protected(line));
    let renamed: Vec<_> = official
        .map(|line| line.replace("lifecycle.k8s.io", OWN))
        .collect();
    assert_eq!(renamed, read("lifecycle.scupper.dev.yaml"));
}
