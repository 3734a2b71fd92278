//! Surge: a drain restarts a Deployment whose budget never lets its pod go. The test plays the Deployment's controller.

use std::path::PathBuf;

use scupper_simulator::api::{Forbidden, objects};
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, asks, until};
use crate::rig::Rig;

pub(crate) const DEPLOYMENTS: &str = "deployments.apps";

/// The only pod of the Deployment `web` is on worker-1, and a budget needs it.
pub(crate) fn rig() -> Rig {
    let rig = Rig::new();
    let pod = objects::pod("shop", "web-a-1", "worker-1").owner_replicaset("web-a");
    rig.apply(pod.label("app", "web"));
    rig.apply(objects::deployment("shop", "web", 1));
    // After its pod, or it would create another.
    rig.apply(revision("web-a"));
    rig.budget("keep-web", "web");
    rig
}

/// A ReplicaSet of the Deployment.
fn revision(name: &str) -> objects::Object {
    objects::replica_set("shop", name, 1)
        .owner_deployment("web")
        .with("/spec/template/metadata/labels", json!({"app": "web"}))
        .with("/status", json!({"observedGeneration": 1, "replicas": 1}))
}

pub(crate) fn and_a_database(rig: &Rig) {
    rig.apply(objects::pod("shop", "db-0", "worker-1").owner_statefulset("db"));
    let set = objects::stateful_set("shop", "db", 1);
    rig.apply(set.with("/status", json!({"observedGeneration": 1, "replicas": 1})));
    rig.budget("keep-db", "db");
}

pub(crate) fn config(rig: &Rig, drain: &str) -> PathBuf {
    let file = rig.dir.path().join("scupper.yaml");
    let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n";
    std::fs::write(&file, format!("{head}drain: {drain}\n")).unwrap();
    file
}

/// The patches of Deployments.
pub(crate) fn patches(rig: &Rig) -> usize {
    let requests = rig.api.requests_since(0);
    let patches = requests
        .iter()
        .filter(|it| it.resource == DEPLOYMENTS && it.verb == "patch");
    patches.count()
}

pub(crate) fn deployment(rig: &Rig) -> Value {
    rig.objects(DEPLOYMENTS).remove(0)
}

/// The rollout begins: a pod of the next ReplicaSet starts on another node, and is not ready.
fn rollout_begins(rig: &Rig) {
    let next = revision("web-b");
    let unready = json!({"testbed/ready": "false"});
    rig.apply(next.with("/spec/template/metadata/annotations", unready));
    let begun = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1});
    let store = rig.api.store();
    store
        .edit(DEPLOYMENTS, "shop", "web", |it| it["status"] = begun)
        .unwrap();
    until("the replacement is created", || rig.pods().len() == 2);
}

/// The replacement is ready, and the first ReplicaSet wants no pod.
fn replacement_is_ready(rig: &Rig) {
    let store = rig.api.store();
    let scaled_down = |set: &mut Value| set["spec"]["replicas"] = 0.into();
    store
        .edit("replicasets.apps", "shop", "web-a", scaled_down)
        .unwrap();
    let ready = |pod: &mut Value| pod["metadata"]["annotations"]["testbed/ready"] = "true".into();
    store.edit("pods", "shop", &replacement(rig), ready).unwrap();
}

fn replacement(rig: &Rig) -> String {
    let mut pods = rig.pods().into_iter();
    pods.find(|name| name.starts_with("web-b-")).unwrap()
}

pub(crate) fn drain(file: &std::path::Path) -> Vec<&str> {
    vec!["drain", "worker-1", "--local", "--config", file.to_str().unwrap()]
}

#[test]
fn the_plan_names_what_is_restarted_and_what_cannot_be() {
    let rig = rig();
    and_a_database(&rig);
    let file = config(&rig, "{surge: {timeout: 5m}}");
    let args = ["plan", "worker-1", "--config", file.to_str().unwrap()];
    let run = rig.run(&args);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let lines = "Restarts of Deployments whose budgets allow no eviction:\n  \
                 Deployment shop/web is restarted to replace shop/web-a-1 (budget keep-web)\n  \
                 cannot restart StatefulSet db, which has shop/db-0 (budget keep-db): a StatefulSet removes a pod before it \
                 replaces it\n";
    assert!(run.stdout.contains(lines), "{}", run.stdout);
    let run = rig.run(&[&args[..], &["--output", "json"]].concat());
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let restart =
        json!({"deployment": "shop/web", "replicas": 1, "budget": "keep-web", "pods": ["shop/web-a-1"]});
    assert_eq!(plan["plan"]["surge"]["restarts"], json!([restart]));
    let findings = plan["findings"].as_array().unwrap();
    assert_eq!(
        findings.len(),
        1,
        "only the database is still held: {findings:#?}"
    );
    let config = config(&rig, "{surge: {timeout: 5m, namespaces: [other]}}");
    let run = rig.run(&["plan", "worker-1", "--config", config.to_str().unwrap()]);
    assert!(!run.stdout.contains("restart"), "{}", run.stdout);
    assert_eq!(patches(&rig), 0);
}

#[test]
fn the_pod_is_evicted_once_its_replacement_is_ready_on_another_node() {
    let rig = rig();
    let file = config(&rig, "{surge: {timeout: 5m}, pre-flight: refuse}");
    let mut run = rig.start(&drain(&file));
    run.prints(
        "surge    Deployment shop/web is restarting; its rollout has 5m00s to replace the pods on this node",
    );
    assert!(rig.is_cordoned("worker-1"));
    let restarted = deployment(&rig);
    let template = &restarted["spec"]["template"]["metadata"]["annotations"];
    assert!(
        template["kubectl.kubernetes.io/restartedAt"].is_string(),
        "{restarted:#}"
    );
    rollout_begins(&rig);
    run.prints("waits    shop/web-a-1: Deployment shop/web is restarted to replace it elsewhere");
    assert!(rig.pods().contains(&"web-a-1".to_owned()), "{:?}", rig.pods());
    replacement_is_ready(&rig);
    let run = run.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    for line in [
        "plan     1 pod to evict in 1 wave, 0 to keep",
        "Deployment shop/web is restarted to replace shop/web-a-1 (budget keep-web)",
        "gone     shop/web-a-1",
        "surge    Deployment shop/web: the rollout has replaced its pods on this node",
        "end      Drained in ",
    ] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    assert_eq!(rig.pods(), [replacement(&rig)]);
    assert_eq!(patches(&rig), 1);
    let events = rig.objects("events.events.k8s.io");
    assert!(
        events.iter().any(|it| it["reason"] == "DeploymentRestarted"),
        "{events:#?}"
    );
}

#[test]
fn a_replacement_that_never_becomes_ready_is_waited_for_no_longer_than_the_timeout() {
    let rig = rig();
    rig.apply(rig.pod("other", "worker-1"));
    let file = config(&rig, "{surge: {timeout: 2s}}");
    let mut run = rig.start(&[&drain(&file)[..], &["--timeout", "6s"]].concat());
    run.prints("surge    Deployment shop/web is restarting");
    rollout_begins(&rig);
    let run = run.ended();
    assert_eq!(run.code, Some(6), "{run:#?}");
    let gave_up = "Deployment shop/web: no replacement was ready within 2s; its pods on this node wait for their budget";
    for line in [
        &*format!("surge    {gave_up}"),
        ": budget keep-web blocks it",
        "gone     shop/other",
        "the deadline passed with one pod still there: shop/web-a-1",
    ] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    assert_eq!(patches(&rig), 1);
    let events = rig.objects("events.events.k8s.io");
    let warning = events.iter().find(|it| it["reason"] == "DeploymentNotReplaced");
    let warning = warning.unwrap();
    assert!(
        warning["type"] == "Warning" && warning["note"].as_str().unwrap().ends_with(gave_up),
        "{warning}"
    );
}

#[test]
fn a_drain_that_is_killed_and_begun_again_restarts_the_deployment_once() {
    let rig = rig();
    let file = config(&rig, "{surge: {timeout: 5m}}");
    let mut first = rig.start(&drain(&file));
    first.prints("surge    Deployment shop/web is restarting");
    let before = deployment(&rig);
    first.kill();
    // The Deployment's controller has not seen the restart yet.
    let mut second = rig.start(&[&drain(&file)[..], &["--take-over"]].concat());
    second.prints("surge    Deployment shop/web is restarting");
    assert_eq!(patches(&rig), 1);
    assert_eq!(deployment(&rig)["spec"], before["spec"]);
    rollout_begins(&rig);
    replacement_is_ready(&rig);
    let run = second.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(patches(&rig), 1);
}

#[test]
fn a_driver_reports_the_restart_to_those_who_ask_it() {
    let rig = rig();
    let file = config(&rig, "{surge: {timeout: 5m}}");
    let _agent = Agent::with(&rig, false, &["--config", file.to_str().unwrap()]);
    let mut follower = rig.start(&asks("drain", &[]));
    follower.prints("Deployment shop/web is restarted to replace shop/web-a-1 (budget keep-web)\n");
    follower.prints("waits    shop/web-a-1: Deployment shop/web is restarted to replace it elsewhere");
    rollout_begins(&rig);
    let status = rig.run(&["status", "worker-1"]);
    let waits = "Deployment shop/web is restarted to replace it elsewhere";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&status.stdout).contains(waits), "{}", status.stdout);
    replacement_is_ready(&rig);
    let run = follower.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(rig.pods(), [replacement(&rig)]);
}

#[test]
fn without_the_right_the_drain_says_so_and_the_doctor_names_the_component() {
    let rig = rig();
    rig.api.set_forbidden(Forbidden {
        user_agent: String::new(),
        user: String::new(),
        verb: "patch".to_owned(),
        resource: DEPLOYMENTS.to_owned(),
    });
    let file = config(&rig, "{surge: {timeout: 5m}, forbidden-timeout: 0}");
    let run = rig.run(&[&drain(&file)[..], &["--timeout", "4s"]].concat());
    assert_eq!(run.code, Some(6), "{run:#?}");
    let refused = run
        .stdout
        .lines()
        .find(|line| line.contains("surge    Deployment"));
    let refused = refused.unwrap_or_else(|| panic!("{}", run.stdout));
    assert!(
        refused.contains("cannot patch") && refused.ends_with("its pods on this node wait for their budget"),
        "{refused}"
    );
    let doctor = rig.run(&["doctor", "--config", file.to_str().unwrap()]);
    for words in [
        "no right to patch deployments.apps, needed to restart Deployments (drain.surge)",
        "use the component deploy/components/surge",
    ] {
        let text = doctor.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{words}: {text}");
    }
}
