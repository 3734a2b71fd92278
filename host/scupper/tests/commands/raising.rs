//! Surge by one replica more: a drain raises a Deployment whose budget never lets its pod go, and takes the replica back
//! once, however it ends. The test plays the Deployment's controller.

use std::path::PathBuf;

use rustix::process::Signal;
use scupper_simulator::api::Forbidden;
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, asks, until};
use crate::rig::{Rig, Running};
use crate::surging::{DEPLOYMENTS, and_a_database, config, deployment, drain, patches, rig};

const SET: &str = "replicasets.apps";
const BEGUN: &str =
    "surge    Deployment shop/web has one replica more; its pods on this node have 5m00s to leave";
const TAKEN_BACK: &str =
    "surge    Deployment shop/web: its replicas are as they were before the drain raised them";

/// Deployments are raised.
fn raises(rig: &Rig) -> PathBuf {
    config(rig, "{surge: {timeout: 5m, method: scale}}")
}

/// The Deployment has as many pods as it wants; what is created from now on is not ready.
fn controller_catches_up(rig: &Rig) {
    let replicas = deployment(rig)["spec"]["replicas"].clone();
    let store = rig.api.store();
    let sized = |set: &mut Value| {
        set["spec"]["template"]["metadata"]["annotations"] = json!({"testbed/ready": "false"});
        set["spec"]["replicas"] = replicas.clone();
        set["status"]["replicas"] = replicas.clone();
    };
    store.edit(SET, "shop", "web-a", sized).unwrap();
    let observed = |web: &mut Value| {
        let generation = web["metadata"]["generation"].clone();
        web["status"] =
            json!({"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas});
    };
    store.edit(DEPLOYMENTS, "shop", "web", observed).unwrap();
    let wanted = usize::try_from(replicas.as_u64().unwrap()).unwrap();
    until("its pods are created", || rig.pods().len() == wanted);
}

/// The pods elsewhere are ready.
fn replacements_are_ready(rig: &Rig) {
    let ready = |pod: &mut Value| pod["metadata"]["annotations"]["testbed/ready"] = "true".into();
    for name in rig.pods().iter().filter(|name| *name != "web-a-1") {
        rig.api.store().edit("pods", "shop", name, ready).unwrap();
    }
}

/// It was raised once and taken back once: each changed its specification.
#[track_caller]
fn is_taken_back_once(rig: &Rig) {
    let web = deployment(rig);
    let annotations = &web["metadata"]["annotations"];
    assert_eq!(web["spec"]["replicas"], 1, "{web:#}");
    assert_eq!(web["metadata"]["generation"], 3, "{web:#}");
    assert!(
        annotations["scupper.dev/raised-from"].is_null() && annotations["scupper.dev/surge"].is_string(),
        "{web:#}"
    );
}

fn reasons(rig: &Rig) -> Vec<String> {
    let events = rig.objects("events.events.k8s.io").into_iter();
    let reasons = events.map(|event| event["reason"].as_str().unwrap().to_owned());
    let mut reasons: Vec<String> = reasons.filter(|it| it.starts_with("Deployment")).collect();
    reasons.sort();
    reasons
}

fn nobody_writes_deployments(rig: &Rig) {
    rig.api.set_forbidden(Forbidden {
        user_agent: String::new(),
        user: String::new(),
        verb: "patch".to_owned(),
        resource: DEPLOYMENTS.to_owned(),
    });
}

/// A drain that has raised the Deployment.
fn begun(rig: &Rig) -> Running {
    let mut run = rig.start(&drain(&raises(rig)));
    run.prints(BEGUN);
    run
}

fn continued(rig: &Rig) -> Running {
    let file = raises(rig);
    rig.start(&[&drain(&file)[..], &["--take-over"]].concat())
}

#[test]
fn the_plan_names_what_is_raised_and_what_cannot_be() {
    let rig = rig();
    and_a_database(&rig);
    let file = raises(&rig);
    let args = ["plan", "worker-1", "--config", file.to_str().unwrap()];
    let run = rig.run(&args);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let lines = "Deployments with one replica more, because their budgets allow no eviction:\n  \
                 Deployment shop/web gets one replica more, 1 -> 2, until shop/web-a-1 is gone (budget keep-web)\n  \
                 cannot raise the replicas of StatefulSet db, which has shop/db-0 (budget keep-db): one more pod of a \
                 StatefulSet replaces none of the others\n";
    assert!(run.stdout.contains(lines), "{}", run.stdout);
    let run = rig.run(&[&args[..], &["--output", "json"]].concat());
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let raise =
        json!({"deployment": "shop/web", "replicas": 1, "budget": "keep-web", "pods": ["shop/web-a-1"]});
    let surge = &plan["plan"]["surge"];
    assert_eq!(
        (&surge["restarts"], &surge["raises"]),
        (&json!([]), &json!([raise]))
    );
    assert_eq!(patches(&rig), 0);
}

#[test]
fn the_replica_is_taken_back_once_the_pod_has_left() {
    let rig = rig();
    let mut run = begun(&rig);
    assert!(rig.is_cordoned("worker-1"));
    let raised = deployment(&rig);
    assert_eq!(raised["spec"]["replicas"], 2, "{raised:#}");
    assert_eq!(raised["metadata"]["annotations"]["scupper.dev/raised-from"], "1");
    controller_catches_up(&rig);
    run.prints("waits    shop/web-a-1: Deployment shop/web gets one replica more, on another node");
    assert!(rig.pods().contains(&"web-a-1".to_owned()), "{:?}", rig.pods());
    assert_eq!(patches(&rig), 1);
    replacements_are_ready(&rig);
    let run = run.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    let said =
        ["gone     shop/web-a-1", TAKEN_BACK, "end      Drained in "].map(|line| run.stdout.find(line));
    assert!(said.is_sorted() && said[0].is_some(), "{}", run.stdout);
    assert!(!rig.pods().contains(&"web-a-1".to_owned()), "{:?}", rig.pods());
    is_taken_back_once(&rig);
    assert_eq!(patches(&rig), 2);
    assert_eq!(reasons(&rig), ["DeploymentRaised", "DeploymentTakenBack"]);
}

#[test]
fn a_drain_that_is_killed_before_the_pod_leaves_takes_the_replica_back_when_it_is_continued() {
    let rig = rig();
    begun(&rig).kill();
    // The Deployment's controller has not seen the raise yet.
    let mut second = continued(&rig);
    second.prints("waits    shop/web-a-1: Deployment shop/web gets one replica more, on another node");
    assert_eq!(deployment(&rig)["spec"]["replicas"], 2);
    controller_catches_up(&rig);
    replacements_are_ready(&rig);
    let run = second.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(run.stdout.matches(TAKEN_BACK).count(), 1, "{}", run.stdout);
    is_taken_back_once(&rig);
    assert_eq!(patches(&rig), 2);
}

#[test]
fn a_drain_that_is_killed_after_the_pod_has_left_takes_the_replica_back_when_it_is_continued() {
    let rig = rig();
    let mut first = begun(&rig);
    nobody_writes_deployments(&rig);
    controller_catches_up(&rig);
    replacements_are_ready(&rig);
    first.prints("gone     shop/web-a-1");
    until("a take-back is refused", || patches(&rig) > 1);
    first.kill();
    let raised = deployment(&rig);
    assert_eq!(raised["spec"]["replicas"], 2, "{raised:#}");
    rig.api.clear_forbidden();
    let run = continued(&rig).ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(run.stdout.matches(TAKEN_BACK).count(), 1, "{}", run.stdout);
    is_taken_back_once(&rig);
}

#[test]
fn a_drain_that_is_cancelled_takes_the_replica_back_and_leaves_the_pod() {
    let rig = rig();
    let run = begun(&rig);
    controller_catches_up(&rig);
    run.signal(Signal::INT);
    let run = run.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stdout.contains(TAKEN_BACK), "{}", run.stdout);
    is_taken_back_once(&rig);
    assert!(rig.pods().contains(&"web-a-1".to_owned()), "{:?}", rig.pods());
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.mark("worker-1"), None);
}

#[test]
fn a_replica_that_finds_no_place_is_taken_back_after_the_timeout() {
    let rig = rig();
    let file = config(&rig, "{surge: {timeout: 2s, method: scale}}");
    let mut run = rig.start(&[&drain(&file)[..], &["--timeout", "8s"]].concat());
    run.prints("surge    Deployment shop/web has one replica more");
    controller_catches_up(&rig);
    let run = run.ended();
    assert_eq!(run.code, Some(6), "{run:#?}");
    let gave_up = "surge    Deployment shop/web: no replacement was ready within 2s; its pods on this node wait for their \
                   budget";
    for line in [
        gave_up,
        TAKEN_BACK,
        ": budget keep-web blocks it",
        "the deadline passed with one pod still there: shop/web-a-1",
    ] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    is_taken_back_once(&rig);
}

#[test]
fn replicas_that_another_client_has_set_meanwhile_are_left_and_the_drain_says_so() {
    let rig = rig();
    let run = begun(&rig);
    let grown = |web: &mut Value| web["spec"]["replicas"] = 5.into();
    rig.api.store().edit(DEPLOYMENTS, "shop", "web", grown).unwrap();
    controller_catches_up(&rig);
    replacements_are_ready(&rig);
    let run = run.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    let left = "surge    Deployment shop/web: the drain does not take its extra replica back: another client has set its \
                replicas to 5";
    assert!(run.stdout.contains(left), "{}", run.stdout);
    let web = deployment(&rig);
    assert_eq!(web["spec"]["replicas"], 5, "{web:#}");
    assert!(
        web["metadata"]["annotations"]["scupper.dev/raised-from"].is_null(),
        "{web:#}"
    );
    assert_eq!(reasons(&rig), ["DeploymentLeftRaised", "DeploymentRaised"]);
}

#[test]
fn a_deployment_with_an_autoscaler_is_named_as_impossible_and_not_raised() {
    let rig = rig();
    rig.apply(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"namespace": "shop", "name": "web-load"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3},
    }));
    let file = raises(&rig);
    let run = rig.run(&["plan", "worker-1", "--config", file.to_str().unwrap()]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let impossible = "cannot raise the replicas of Deployment web, which has shop/web-a-1 (budget keep-web): \
                      HorizontalPodAutoscaler web-load sets its replicas, and would take one more back\n";
    assert!(run.stdout.contains(impossible), "{}", run.stdout);
    let run = rig.run(&[&drain(&file)[..], &["--timeout", "3s"]].concat());
    assert_eq!(run.code, Some(6), "{run:#?}");
    assert!(run.stdout.contains(impossible), "{}", run.stdout);
    assert_eq!(patches(&rig), 0);
}

#[test]
fn a_drain_that_a_driver_carries_out_takes_the_replica_back_also_when_it_is_cancelled() {
    for cancelled in [false, true] {
        let rig = rig();
        let file = raises(&rig);
        let _agent = Agent::with(&rig, false, &["--config", file.to_str().unwrap()]);
        let mut follower = rig.start(&asks("drain", &[]));
        follower.prints(
            "Deployment shop/web gets one replica more, 1 -> 2, until shop/web-a-1 is gone (budget keep-web)",
        );
        follower.prints("waits    shop/web-a-1: Deployment shop/web gets one replica more, on another node");
        until("it is raised", || deployment(&rig)["spec"]["replicas"] == 2);
        controller_catches_up(&rig);
        if cancelled {
            let cancel = rig.run(&asks("cancel", &[]));
            assert_eq!(cancel.code, Some(0), "{cancel:#?}");
        } else {
            replacements_are_ready(&rig);
        }
        let run = follower.ended();
        assert_eq!(run.code, Some(if cancelled { 5 } else { 0 }), "{run:#?}");
        until("it is taken back", || deployment(&rig)["spec"]["replicas"] == 1);
        is_taken_back_once(&rig);
        assert_eq!(
            rig.pods().contains(&"web-a-1".to_owned()),
            cancelled,
            "{:?}",
            rig.pods()
        );
    }
}

/// Its drain has ended, and could not take the replica back; the mark on the node knows it.
fn left_raised() -> (Rig, PathBuf) {
    let rig = rig();
    let file = raises(&rig);
    let mut run = rig.start(&[&drain(&file)[..], &["--timeout", "30s"]].concat());
    run.prints(BEGUN);
    controller_catches_up(&rig);
    nobody_writes_deployments(&rig);
    replacements_are_ready(&rig);
    let run = run.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    rig.api.clear_forbidden();
    let edit = |node: &mut Value| node["spec"]["unschedulable"] = json!(false);
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", edit))
        .unwrap();
    (rig, file)
}

#[test]
fn a_replica_that_was_left_is_taken_back_by_the_next_drain() {
    let (rig, file) = left_raised();
    let run = rig.run(&["drain", "worker-1", "--local", "--config", file.to_str().unwrap()]);
    assert_eq!(deployment(&rig)["spec"]["replicas"], 1, "{run:#?}");
}

#[test]
fn a_replica_that_was_left_is_taken_back_by_the_next_drain_of_several_nodes() {
    let (rig, file) = left_raised();
    rig.apply(scupper_simulator::api::objects::node("worker-3"));
    let run = rig.run(&[
        "drain",
        "worker-1",
        "worker-3",
        "--local",
        "--config",
        file.to_str().unwrap(),
    ]);
    assert_eq!(deployment(&rig)["spec"]["replicas"], 1, "{run:#?}");
}
