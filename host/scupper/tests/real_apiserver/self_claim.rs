//! Self-claim on a real API server, in either API group, and the report of `scupper doctor` about each.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::area::Area;
use super::testbed::Testbed;
use super::{ALONE, condition, pods_on, skip};
pub(super) use crate::limit::LIMIT;

pub(super) const OFFICIAL: &str = "lifecycle.k8s.io";
const OWN: &str = "lifecycle.scupper.dev";
/// The driver of a test that has its own control plane.
pub(super) const DRIVER: &str = "claims.example";

/// A driver on a node whose kubelet does not look for plugins.
pub(super) struct Claimer {
    child: Child,
    name: String,
    node: String,
    folder: tempfile::TempDir,
}

impl Claimer {
    /// With an account of its own, and with additional flags.
    pub(super) fn start(name: &str, node: &str, kubeconfig: &Path, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for directory in ["plugins", "plugins_registry"] {
            std::fs::create_dir(folder.path().join(directory)).unwrap();
        }
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = scupper(kubeconfig, &["kubelet-plugin", "--claim", "self", "--force"])
            .args(more)
            .args(["--driver-name", name, "--node-name", node, "--kubelet-root"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self {
            child,
            name: name.to_owned(),
            node: node.to_owned(),
            folder,
        }
    }

    pub(super) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// What it printed and logged.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Creates an event and waits until it is gone. The terminal status is visible because a finalizer keeps the event.
    fn carries_out(&self, testbed: &Testbed, group: &str, transition: &str) -> String {
        let name = self.asks(testbed, group, transition);
        self.ended(testbed, group, &name)
    }

    /// Waits until it has published its transitions.
    pub(super) fn publishes(&mut self, testbed: &Testbed) {
        let begun = Instant::now();
        let count = || {
            let all = testbed.get(&format!("/apis/{OFFICIAL}/v1alpha1/lifecycletransitions"));
            let all = all["items"].as_array().unwrap().iter();
            all.filter(|it| it["spec"]["driver"] == *self.name).count()
        };
        while count() < 2 {
            let running = self.child.try_wait().unwrap().is_none();
            assert!(running && begun.elapsed() < LIMIT, "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Creates an event for this transition of its node, which a finalizer keeps; returns the event's name.
    pub(super) fn asks(&self, testbed: &Testbed, group: &str, transition: &str) -> String {
        let name = format!("{transition}-once");
        let event = json!({
            "apiVersion": format!("{group}/v1alpha1"), "kind": "LifecycleEvent",
            "metadata": {"name": name, "finalizers": ["example.com/hold"]},
            "spec": {"transitionName": transition, "bindingNode": self.node},
        });
        testbed.post(&format!("/apis/{group}/v1alpha1/lifecycleevents"), &event);
        name
    }

    /// The terminal status of an event that only its finalizer keeps; then removes the finalizer.
    pub(super) fn ended(&self, testbed: &Testbed, group: &str, name: &str) -> String {
        let path = format!("/apis/{group}/v1alpha1/lifecycleevents/{name}");
        let begun = Instant::now();
        let event = loop {
            let event = testbed.get(&path);
            let names = event["metadata"]["finalizers"].as_array().unwrap();
            if event["metadata"]["deletionTimestamp"].is_string() && names.len() == 1 {
                break event;
            }
            assert!(begun.elapsed() < LIMIT, "{event:#}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        };
        testbed.patch(&path, &json!({"metadata": {"finalizers": null}}));
        assert_eq!(event["status"]["driver"], *self.name);
        event["status"]["claimStatus"].as_str().unwrap().to_owned()
    }
}

impl Drop for Claimer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn scupper(kubeconfig: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command
        .args(args)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .env("SCUPPER_LOG", "info");
    command
}

/// The doctor's findings about a driver and its node, and its exit code.
fn doctor(testbed: &Testbed, driver: &str, node: &str) -> (Vec<Value>, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command
        .args(["doctor", "--node", node, "--driver-name", driver])
        .args(["--output", "json", "--kubeconfig"])
        .arg(testbed.kubeconfig());
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    let findings = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let findings: Vec<Value> = findings.collect();
    let version = testbed.version();
    assert!(
        !findings.is_empty(),
        "{version}: {}",
        String::from_utf8_lossy(&stderr)
    );
    (findings, status.code().unwrap())
}

fn finding<'a>(findings: &'a [Value], subject: &str) -> &'a Value {
    let found = findings.iter().find(|finding| finding["subject"] == subject);
    found.unwrap_or_else(|| panic!("nothing about {subject}: {findings:#?}"))
}

/// A drain and an uncordon by events in this group.
fn drains(testbed: &Testbed, group: &str, driver: &str, node: &str) {
    testbed.pods(node, 5, 1);
    let claimer = Claimer::start(driver, node, &testbed.kubeconfig(), &[]);
    let succeeded = claimer.carries_out(testbed, group, driver);
    assert_eq!(succeeded, "Succeeded", "{}", claimer.log());
    assert_eq!(pods_on(testbed, node), 0);
    assert_eq!(condition(testbed, node, "Drained"), "True");
    assert_eq!(super::node(testbed, node)["spec"]["unschedulable"], true);
    let back = claimer.carries_out(testbed, group, &format!("{driver}-uncordon"));
    assert_eq!(back, "Succeeded", "{}", claimer.log());
    assert_eq!(super::node(testbed, node)["spec"]["unschedulable"], Value::Null);
}

#[test]
fn an_event_of_the_crds_drains_a_node_whose_kubelet_knows_nothing_of_it() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let (driver, node) = (area.driver(), area.node(0));
    drains(&area, OFFICIAL, &driver, node);
    let findings = doctor_is_content(&area, OFFICIAL, &driver, node);
    assert_eq!(finding(&findings, "rights")["state"], "ok");

    doctor_tells_the_powerless(&area);
}

/// The doctor finds no problem, names this group, and has seen a running driver.
fn doctor_is_content(testbed: &Testbed, group: &str, driver: &str, node: &str) -> Vec<Value> {
    let (findings, code) = doctor(testbed, driver, node);
    assert_eq!(code, 0, "{findings:#?}");
    let text = finding(&findings, "lifecycle API")["text"].as_str().unwrap();
    assert!(text.contains(group), "{text}");
    assert_eq!(finding(&findings, "transitions")["state"], "ok");
    findings
}

/// A user without permissions gets a finding for each missing one.
fn doctor_tells_the_powerless(testbed: &Testbed) {
    let account = ["--serviceaccount", "default/powerless", "--kubeconfig"];
    let kubeconfig = testbed.run(&["token"], &account);
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    let output = command
        .args(["doctor", "--output", "json", "--kubeconfig"])
        .arg(kubeconfig.trim())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(8), "{text}");
    let lacks = |right: &str| text.contains(&format!("no right to {right},"));
    for right in [
        "patch nodes/status",
        "create pods/eviction",
        "patch lifecycleevents/status.lifecycle.k8s.io",
        "list daemonsets.apps",
    ] {
        assert!(lacks(right), "{right}: {text}");
    }
}

#[test]
fn where_the_server_keeps_the_group_for_itself_ours_takes_its_place() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--eviction-request"]);
    // Established, and not served.
    testbed.install("lifecycle.yaml");
    let (findings, code) = doctor(&testbed, DRIVER, "node-1");
    assert_eq!(code, 8, "{findings:#?}");
    let found = finding(&findings, "lifecycle API");
    assert_eq!(found["state"], "wrong");
    assert!(
        found["text"].as_str().unwrap().contains("evictionrequests"),
        "{found}"
    );
    let remedy = found["remedy"].as_str().unwrap();
    assert!(
        remedy.ends_with("deploy/crds/lifecycle.scupper.dev.yaml"),
        "{remedy}"
    );

    testbed.install("lifecycle.scupper.dev.yaml");
    drains(&testbed, OWN, DRIVER, "node-1");
    doctor_is_content(&testbed, OWN, DRIVER, "node-1");
}
