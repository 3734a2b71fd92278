//! The engine's tasks: exactly one request each, and the meaning of its answers.

use std::time::Duration;

use scupper_cluster::Cluster;
use scupper_engine::{Answer, Checkpoint, EvictAnswer, Phase, PodRef, Task, Time, Uid};
use serde_json::{Value, json};

use crate::script::{Script, cluster, cluster_evicting_as, node, not_found, pod, status};

fn uid() -> Uid {
    Uid::new("u1")
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        id: "i".into(),
        name: "drain-n1".into(),
        trigger: "command".into(),
        phase: Phase::Cordoning,
        own_cordon: true,
        ..Checkpoint::blank(uid(), Time::from_millis(7))
    }
}

const NOTE: &str = "{\"v\":1,\"node\":\"u1\",\"id\":\"i\",\"name\":\"drain-n1\",\"by\":\"command\",\"intent\":\"drain\",\"phase\":\"cordoning\",\
                    \"started\":7,\"own_cordon\":true}";

fn db0() -> PodRef {
    PodRef {
        namespace: "ns".into(),
        name: "db-0".into(),
        uid: Uid::new("uid-db-0"),
    }
}

fn cordon() -> Task {
    Task::Cordon {
        node: uid(),
        checkpoint: checkpoint(),
        version: "12".into(),
    }
}

fn evict() -> Task {
    Task::Evict {
        pod: db0(),
        grace_seconds: None,
    }
}

/// Performs a task whose only request the script answers.
async fn one<F: Future<Output = Script>>(task: Task, script: impl FnOnce(Script) -> F) -> Answer {
    let (cluster, server) = cluster();
    let (answer, server) = tokio::join!(cluster.perform("n1", &task), script(server));
    server.finish(cluster).await;
    answer
}

/// Performs a write of the node and returns its patch.
async fn patch_of(task: Task, wanted: Value) {
    let answer = one(task, async |mut server: Script| {
        let call = server.expect("PATCH", "/api/v1/nodes/n1").await;
        assert_eq!(call.query("fieldManager"), Some("scupper"));
        assert_eq!(call.content_type, "application/merge-patch+json");
        assert_eq!(call.body, wanted);
        call.answer(200, node("13"));
        server
    });
    assert_eq!(answer.await, Answer::Written { version: "13".into() });
}

#[tokio::test]
async fn patches_of_the_node() {
    let kept = json!({"scupper.dev/drain": NOTE});
    let removed = json!({"scupper.dev/drain": null});
    let both = json!({"metadata": {"uid": "u1", "resourceVersion": "12", "annotations": kept}, "spec": {"unschedulable": true}});
    patch_of(cordon(), both).await;
    patch_of(
        Task::Save {
            node: uid(),
            checkpoint: checkpoint(),
        },
        json!({"metadata": {"uid": "u1", "annotations": kept}}),
    )
    .await;
    patch_of(
        Task::Forget { node: uid() },
        json!({"metadata": {"uid": "u1", "annotations": removed}}),
    )
    .await;
    let lifted = json!({"metadata": {"uid": "u1", "resourceVersion": "12", "annotations": removed}, "spec": {"unschedulable": null}});
    patch_of(
        Task::Uncordon {
            node: uid(),
            checkpoint: None,
            version: "12".into(),
        },
        lifted,
    )
    .await;
    let lifted = json!({"metadata": {"uid": "u1", "resourceVersion": "12", "annotations": kept}, "spec": {"unschedulable": null}});
    patch_of(
        Task::Uncordon {
            node: uid(),
            checkpoint: Some(checkpoint()),
            version: "12".into(),
        },
        lifted,
    )
    .await;
}

async fn refused(task: Task, code: u16, words: &str) -> Answer {
    one(task, async |mut server: Script| {
        server.next().await.fail(code, "", words);
        server
    })
    .await
}

#[tokio::test]
async fn refused_writes_of_the_node() {
    for task in [cordon(), Task::Forget { node: uid() }] {
        assert_eq!(refused(task.clone(), 409, "changed").await, Answer::WriteConflict);
        for code in [401, 403] {
            assert_eq!(
                refused(task.clone(), code, "no").await,
                Answer::Forbidden { message: "no".into() },
                "{code}"
            );
        }
        for code in [400, 404, 422] {
            assert_eq!(
                refused(task.clone(), code, "no").await,
                Answer::Rejected { message: "no".into() },
                "{code}"
            );
        }
        for code in [429, 500, 503, 504] {
            assert_eq!(
                refused(task.clone(), code, "later").await,
                Answer::Unavailable {
                    message: "later".into()
                },
                "{code}"
            );
        }
    }
}

#[tokio::test]
async fn an_oversized_checkpoint_names_what_to_delete() {
    let save = Task::Save {
        node: uid(),
        checkpoint: checkpoint(),
    };
    let words = "Node \"n1\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes";
    let answer = one(save, async |mut server: Script| {
        server.next().await.fail(422, "Invalid", words);
        let mut full = node("13");
        full["metadata"]["annotations"] = json!({
            "a.example.com/small": "x",
            "b.example.com/large": "x".repeat(200_000),
            "c.example.com/middle": "x".repeat(60_000),
            "scupper.dev/drain": "ours",
        });
        server.expect("GET", "/api/v1/nodes/n1").await.answer(200, full);
        server
    });
    let bytes = NOTE.len() + "scupper.dev/drain".len();
    let reported = format!(
        "the checkpoint of this drain ({bytes} bytes) does not fit: all annotations of node n1 together may have 262144 \
         bytes, and others have 260059, most of all b.example.com/large (200019 bytes), c.example.com/middle (60020 \
         bytes), a.example.com/small (20 bytes); delete what is not needed, for instance `kubectl annotate node n1 \
         b.example.com/large-`"
    );
    assert_eq!(answer.await, Answer::Rejected { message: reported });
}

#[tokio::test]
async fn writes_of_a_node_that_is_gone() {
    for task in [cordon(), Task::Forget { node: uid() }] {
        let answer = one(task.clone(), async |mut server: Script| {
            server.next().await.answer(404, not_found("nodes", "n1"));
            server
        });
        assert_eq!(answer.await, Answer::NodeGone);
        let words = "Node \"n1\" is invalid: metadata.uid: Invalid value: \"u1\": field is immutable";
        assert_eq!(refused(task, 422, words).await, Answer::NodeGone);
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_writes_time_out() {
    let answer = one(cordon(), async |mut server: Script| {
        let waiting = server.next().await.hang();
        tokio::time::sleep(Duration::from_secs(11)).await;
        drop(waiting);
        server
    });
    assert_eq!(
        answer.await,
        Answer::Unavailable {
            message: "no answer within 10 s".into()
        }
    );

    let answer = one(cordon(), async |mut server: Script| {
        server.next().await.break_off();
        server
    });
    let Answer::Unavailable { message } = answer.await else {
        panic!("a broken connection is no answer")
    };
    assert!(message.contains("connection reset by peer"), "{message}");
}

#[tokio::test]
async fn evictions_carry_the_uid() {
    for (grace_seconds, options) in [
        (None, json!({"preconditions": {"uid": "uid-db-0"}})),
        (
            Some(0),
            json!({"preconditions": {"uid": "uid-db-0"}, "gracePeriodSeconds": 0}),
        ),
    ] {
        let answer = one(
            Task::Evict {
                pod: db0(),
                grace_seconds,
            },
            async |mut server: Script| {
                let call = server
                    .expect("POST", "/api/v1/namespaces/ns/pods/db-0/eviction")
                    .await;
                assert_eq!(call.content_type, "application/json");
                let wanted = json!({
                    "apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"namespace": "ns", "name": "db-0"}, "deleteOptions": options,
                });
                assert_eq!(call.body, wanted);
                call.answer(201, json!({"kind": "Status", "status": "Success"}));
                server
            },
        );
        assert_eq!(answer.await, Answer::Evict(EvictAnswer::Accepted));
    }
}

/// Other requests are not sent as that user.
#[tokio::test]
async fn only_evictions_are_requested_as_another_user() {
    let (cluster, mut server) = cluster_evicting_as(Some("system:node:n1"));
    let save = Task::Save {
        node: uid(),
        checkpoint: checkpoint(),
    };
    for (task, user) in [(evict(), "system:node:n1"), (save, "")] {
        let ask = cluster.perform("n1", &task);
        let answer = async {
            let call = server.next().await;
            assert_eq!(call.impersonates, user, "{}", call.path);
            call.answer(500, status(500, "InternalError", "not now"));
        };
        tokio::join!(ask, answer);
    }
}

/// A server that lets evictions time out gets fewer requests at once.
#[tokio::test]
async fn a_server_under_load_gets_fewer_concurrent_evictions() {
    let (cluster, mut server) = cluster();
    let before = cluster.evictions_at_once();
    let task = evict();
    let ask = cluster.perform("n1", &task);
    let answer = async {
        let call = server.next().await;
        call.answer(
            504,
            status(
                504,
                "Timeout",
                "request did not complete within the allotted timeout",
            ),
        );
    };
    tokio::join!(ask, answer);
    assert_eq!(cluster.evictions_at_once(), before / 2);
}

#[tokio::test]
async fn deletions_carry_the_uid() {
    let answer = one(
        Task::Delete {
            pod: db0(),
            grace_seconds: Some(5),
        },
        async |mut server: Script| {
            let call = server.expect("DELETE", "/api/v1/namespaces/ns/pods/db-0").await;
            let wanted = json!({
                "apiVersion": "v1", "kind": "DeleteOptions",
                "preconditions": {"uid": "uid-db-0"}, "gracePeriodSeconds": 5,
            });
            assert_eq!(call.body, wanted);
            call.answer(200, pod("db-0", "9"));
            server
        },
    );
    assert_eq!(answer.await, Answer::Evict(EvictAnswer::Accepted));
}

#[tokio::test]
async fn a_refused_eviction_is_not_repeated_and_keeps_retry_after() {
    let answer = one(evict(), async |mut server: Script| {
        let mut body = status(429, "TooManyRequests", "Cannot evict pod.");
        body["details"] =
            json!({"causes": [{"reason": "DisruptionBudget", "message": "Still being processed."}]});
        server.next().await.answer_after(429, Some(10), body);
        server
    });
    let message = "Cannot evict pod. Still being processed.".into();
    let wanted = EvictAnswer::BudgetNotObserved {
        message,
        retry_after: Duration::from_secs(10),
    };
    assert_eq!(answer.await, Answer::Evict(wanted));

    let answer = one(evict(), async |mut server: Script| {
        server.next().await.answer_after(503, Some(2), json!("no leader"));
        server
    });
    let message = "HTTP 503: \"no leader\"".into();
    let wanted = EvictAnswer::Refused {
        code: 503,
        message,
        retry_after: Some(Duration::from_secs(2)),
    };
    assert_eq!(answer.await, Answer::Evict(wanted));
}

#[tokio::test]
async fn a_pod_that_is_gone() {
    let answer = one(evict(), async |mut server: Script| {
        server.next().await.answer(404, not_found("pods", "db-0"));
        server
    });
    assert_eq!(answer.await, Answer::Evict(EvictAnswer::NotFound));
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_eviction_has_its_own_limit() {
    let answer = one(evict(), async |mut server: Script| {
        let waiting = server.next().await.hang();
        tokio::time::sleep(Duration::from_secs(6)).await;
        drop(waiting);
        server
    });
    assert_eq!(
        answer.await,
        Answer::Evict(EvictAnswer::Unreachable {
            message: "no answer within 5 s".into()
        })
    );
}

#[tokio::test]
async fn pods_are_listed_page_by_page_from_the_source_of_truth() {
    let answer = one(Task::ListPods, async |mut server: Script| {
        let call = server.expect("GET", "/api/v1/pods").await;
        assert_eq!(call.query("fieldSelector"), Some("spec.nodeName=n1"));
        assert_eq!(
            (
                call.query("limit"),
                call.query("resourceVersion"),
                call.query("continue")
            ),
            (Some("500"), None, None)
        );
        call.answer(
            200,
            json!({"metadata": {"resourceVersion": "9", "continue": "c1"}, "items": [pod("a", "1")]}),
        );
        let call = server.expect("GET", "/api/v1/pods").await;
        assert_eq!(
            (call.query("limit"), call.query("continue")),
            (Some("500"), Some("c1"))
        );
        call.answer(
            200,
            json!({"metadata": {"resourceVersion": "9"}, "items": [pod("b", "2")]}),
        );
        server
    });
    let Answer::Pods(pods) = answer.await else {
        panic!("no pods")
    };
    assert_eq!(
        pods.iter().map(|pod| pod.id.name.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
}

#[tokio::test]
async fn a_list_that_fails_is_not_an_empty_one() {
    for code in [403, 404, 410, 500] {
        let answer = refused(Task::ListPods, code, "no").await;
        assert!(matches!(answer, Answer::Unavailable { .. }), "{code}: {answer:?}");
    }
    let answer = one(Task::ListPods, async |mut server: Script| {
        server.next().await.answer(200, json!("what?"));
        server
    });
    assert!(matches!(answer.await, Answer::Unavailable { .. }));
}

#[tokio::test]
async fn tasks_that_do_not_concern_the_api_server_are_rejected() {
    let (cluster, server) = cluster();
    let task = Task::Plan {
        policy: "p".into(),
        draft: scupper_engine::Plan::default(),
    };
    assert!(matches!(
        Cluster::perform(&cluster, "n1", &task).await,
        Answer::Rejected { .. }
    ));
    server.finish(cluster).await;
}
