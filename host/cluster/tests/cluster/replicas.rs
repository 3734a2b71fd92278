//! Replicas that a drain raises by one: each raise and each take-back is one write for what was read, at most once.

use std::time::Duration;

use scupper_cluster::Cluster;
use scupper_engine::{Answer, DeploymentRef, SurgeMethod, Task, Uid};
use scupper_pre_flight::NamespaceState;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::script::{Script, cluster, not_found};

const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const SURGE: &str = "scupper.dev/surge";
const RAISED: &str = "scupper.dev/raised-from";

fn web() -> DeploymentRef {
    DeploymentRef {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: Uid::new("u-web"),
    }
}

fn raise() -> Task {
    Task::Surge {
        deployment: web(),
        drain: "drain-1".to_owned(),
        method: SurgeMethod::Scale,
    }
}

fn restart() -> Task {
    Task::Surge {
        deployment: web(),
        drain: "drain-1".to_owned(),
        method: SurgeMethod::Restart,
    }
}

fn take_back() -> Task {
    Task::TakeBack {
        deployment: web(),
        drain: "drain-1".to_owned(),
    }
}

fn deployment(replicas: u32, annotations: Value) -> Value {
    json!({
        "metadata": {
            "name": "web", "uid": "u-web", "resourceVersion": "7", "generation": 2, "annotations": annotations,
        },
        "spec": {"replicas": replicas},
        "status": {"observedGeneration": 2, "replicas": replicas, "updatedReplicas": replicas},
    })
}

/// Performs the task on this Deployment, and returns the answer and what was written.
async fn performed(task: Task, found: Value) -> (Answer, Option<Value>) {
    let (cluster, mut server) = cluster();
    let (answer, written) = tokio::join!(cluster.perform("n1", &task), async {
        server.expect("GET", WEB).await.answer(200, found);
        written(&mut server).await
    });
    server.finish(cluster).await;
    (answer, written)
}

async fn written(server: &mut Script) -> Option<Value> {
    if !server.is_waiting().await {
        return None;
    }
    let call = server.expect("PATCH", WEB).await;
    assert_eq!(call.content_type, "application/merge-patch+json");
    let patch = call.body.clone();
    call.answer(200, json!({"metadata": {"resourceVersion": "8"}}));
    Some(patch)
}

fn done() -> Answer {
    Answer::Written {
        version: "8".to_owned(),
    }
}

fn patch(annotations: Value, spec: Value) -> Option<Value> {
    let meta = json!({"uid": "u-web", "resourceVersion": "7", "annotations": annotations});
    Some(json!({"metadata": meta, "spec": spec}))
}

#[tokio::test(start_paused = true)]
async fn a_raise_and_its_record_are_one_write_for_the_version_that_was_read() {
    for annotations in [json!({}), json!({SURGE: "drain-0"})] {
        let (answer, wrote) = performed(raise(), deployment(3, annotations)).await;
        assert_eq!(answer, done());
        let record = json!({SURGE: "drain-1", RAISED: "3"});
        assert_eq!(wrote, patch(record, json!({"replicas": 4})));
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_raises_a_deployment_once_and_not_beside_another_drain_or_a_rollout() {
    let version = "7".to_owned();
    let ours = json!({SURGE: "drain-1", RAISED: "1"});
    let unchanged = performed(raise(), deployment(2, ours)).await;
    assert_eq!(unchanged, (Answer::Written { version }, None));
    let (answer, wrote) = performed(raise(), deployment(1, json!({SURGE: "drain-1"}))).await;
    assert!(
        matches!(answer, Answer::Rejected { .. }) && wrote.is_none(),
        "{answer:?}"
    );
    let other = json!({SURGE: "node-2/uid-2/drain-1", RAISED: "1"});
    let (answer, wrote) = performed(raise(), deployment(2, other)).await;
    let message =
        "the drain of node node-2 (drain-1) has raised the replicas of Deployment shop/web".to_owned();
    assert_eq!((answer, wrote), (Answer::Busy { message }, None));
    let mut rolling = deployment(1, json!({}));
    rolling["status"]["updatedReplicas"] = json!(0);
    let (answer, wrote) = performed(raise(), rolling).await;
    assert!(
        matches!(answer, Answer::Busy { .. }) && wrote.is_none(),
        "{answer:?}"
    );
}

/// Its name would replace that of the drain whose take-back looks for its own.
#[tokio::test(start_paused = true)]
async fn a_deployment_is_not_restarted_while_another_drain_has_raised_it() {
    let other = json!({SURGE: "node-2/uid-2/drain-2", RAISED: "1"});
    let (answer, wrote) = performed(restart(), deployment(2, other)).await;
    let message =
        "the drain of node node-2 (drain-2) has raised the replicas of Deployment shop/web".to_owned();
    assert_eq!((answer, wrote), (Answer::Busy { message }, None));
    // The owner has set the replicas back: no raise is left to hide.
    let record = json!({SURGE: "node-2/uid-2/drain-2", RAISED: "1"});
    for annotations in [json!({}), json!({SURGE: "node-2/uid-2/drain-2"}), record] {
        let (answer, wrote) = performed(restart(), deployment(1, annotations)).await;
        assert_eq!(answer, done());
        assert!(wrote.is_some_and(|wrote| wrote["metadata"]["annotations"] == json!({SURGE: "drain-1"})));
    }
    let version = "7".to_owned();
    let (answer, wrote) = performed(restart(), deployment(1, json!({SURGE: "drain-1"}))).await;
    assert_eq!((answer, wrote), (Answer::Written { version }, None), "once");
}

#[tokio::test(start_paused = true)]
async fn a_take_back_restores_the_number_from_before_and_leaves_the_name_of_the_drain() {
    let ours = json!({SURGE: "drain-1", RAISED: "3"});
    let (answer, wrote) = performed(take_back(), deployment(4, ours)).await;
    assert_eq!(answer, done());
    assert_eq!(wrote, patch(json!({RAISED: null}), json!({"replicas": 3})));
}

#[tokio::test(start_paused = true)]
async fn replicas_that_another_client_has_changed_are_left() {
    for (replicas, raised) in [(7, "3"), (2, "3"), (4, "many")] {
        let ours = json!({SURGE: "drain-1", RAISED: raised});
        let (answer, wrote) = performed(take_back(), deployment(replicas, ours)).await;
        let message = format!("another client has set its replicas to {replicas}");
        assert_eq!(answer, Answer::Rejected { message });
        assert_eq!(wrote, patch(json!({RAISED: null}), json!({})));
    }
    // Such as a GitOps controller.
    let ours = json!({SURGE: "drain-1", RAISED: "3"});
    let (answer, wrote) = performed(take_back(), deployment(3, ours)).await;
    assert_eq!((answer, wrote), (done(), patch(json!({RAISED: null}), json!({}))));
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_back_or_is_of_another_drain_is_not_written() {
    for annotations in [json!({SURGE: "drain-1"}), json!({SURGE: "drain-2", RAISED: "1"})] {
        let version = "7".to_owned();
        let (answer, wrote) = performed(take_back(), deployment(2, annotations)).await;
        assert_eq!((answer, wrote), (Answer::Written { version }, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_take_back_before_a_raise_makes_the_raise_fail() {
    let (answer, wrote) = performed(take_back(), deployment(1, json!({}))).await;
    assert_eq!(
        (answer, wrote),
        (done(), patch(json!({SURGE: "drain-1"}), json!({})))
    );
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_deleted_or_made_anew_is_gone_and_one_that_changes_is_a_conflict() {
    for task in [raise(), take_back()] {
        let mut other = deployment(1, json!({}));
        other["metadata"]["uid"] = json!("u-other");
        assert_eq!(performed(task.clone(), other).await, (Answer::NodeGone, None));
        let (cluster, mut server) = cluster();
        let (answer, ()) = tokio::join!(cluster.perform("n1", &task), async {
            let call = server.expect("GET", WEB).await;
            call.answer(404, not_found("deployments", "web"));
        });
        assert_eq!(answer, Answer::NodeGone);
        let (answer, ()) = tokio::join!(cluster.perform("n1", &task), async {
            server
                .expect("GET", WEB)
                .await
                .answer(200, deployment(1, json!({})));
            let call = server.expect("PATCH", WEB).await;
            call.fail(409, "Conflict", "the object has been modified");
        });
        assert_eq!(answer, Answer::WriteConflict);
        server.finish(cluster).await;
    }
}

/// Reads the namespace `shop`, whose autoscalers are answered so.
async fn read(cluster: &Cluster, server: &mut Script, status: u16) -> NamespaceState {
    let answers = async {
        loop {
            let call = server.next().await;
            let target = |kind: &str, name: &str| {
                let target = json!({"kind": kind, "name": name, "apiVersion": "apps/v1"});
                json!({"metadata": {"name": "hpa"}, "spec": {"scaleTargetRef": target}})
            };
            if call.path == "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers" {
                let items = [target("Deployment", "web"), target("StatefulSet", "db")];
                match status {
                    200 => call.answer(200, json!({"metadata": {"resourceVersion": "1"}, "items": items})),
                    code => call.fail(code, "Forbidden", "no"),
                }
                continue;
            }
            let is_namespace = call.path == "/api/v1/namespaces/shop";
            call.answer(
                200,
                match is_namespace {
                    true => json!({"metadata": {"name": "shop", "uid": "u-shop"}}),
                    false => json!({"metadata": {"resourceVersion": "1"}, "items": []}),
                },
            );
        }
    };
    tokio::select! {
        biased;
        state = cluster.namespace_state("shop", true) => state.unwrap(),
        () = answers => panic!("the answers end"),
    }
}

#[tokio::test(start_paused = true)]
async fn autoscalers_of_deployments_are_read_and_those_that_cannot_be_are_unknown() {
    let (cluster, mut server) = cluster();
    let expected = NamespaceState::new(false, Vec::new(), Vec::new());
    let state = read(&cluster, &mut server, 200).await;
    let autoscalers = [("web".to_owned(), "hpa".to_owned())].into();
    assert_eq!(state, expected.clone().with_autoscalers(autoscalers));
    let since = Instant::now();
    assert_eq!(read(&cluster, &mut server, 403).await, expected);
    assert!(since.elapsed() >= Duration::from_secs(10), "it may be a hiccup");
    let known = Instant::now();
    assert_eq!(read(&cluster, &mut server, 403).await, expected);
    assert_eq!(known.elapsed(), Duration::ZERO);
    server.finish(cluster).await;
}
