//! Annotations, conditions, Kubernetes Events, and reads of the node.

use scupper_api::NodeCondition;
use scupper_cluster::{KubernetesEvent, ReadError, Series, Severity, WriteError};
use scupper_engine::{PodRef, Time, Uid};
use serde_json::{Value, json};

use crate::script::{TEN, cluster, node, not_found, pod, status};

#[tokio::test(start_paused = true)]
async fn annotations() {
    let (cluster, mut server) = cluster();
    let db0 = PodRef {
        namespace: "ns".into(),
        name: "db-0".into(),
        uid: Uid::new("uid-db-0"),
    };
    let (written, ()) = tokio::join!(
        cluster.set_node_annotation("n1", "slurm.dev/state", "drained"),
        async {
            let call = server.expect("PATCH", "/api/v1/nodes/n1").await;
            assert_eq!(
                call.body,
                json!({"metadata": {"annotations": {"slurm.dev/state": "drained"}}})
            );
            call.answer(200, node("2"));
        }
    );
    assert_eq!(written, Ok(()));
    let (written, ()) = tokio::join!(cluster.remove_node_annotation("n1", "slurm.dev/state"), async {
        let call = server.expect("PATCH", "/api/v1/nodes/n1").await;
        assert_eq!(
            call.body,
            json!({"metadata": {"annotations": {"slurm.dev/state": null}}})
        );
        call.answer(200, node("3"));
    });
    assert_eq!(written, Ok(()));
    let (written, ()) = tokio::join!(cluster.set_pod_annotation(&db0, "a", "b"), async {
        let call = server.expect("PATCH", "/api/v1/namespaces/ns/pods/db-0").await;
        assert_eq!(
            call.body,
            json!({"metadata": {"uid": "uid-db-0", "annotations": {"a": "b"}}})
        );
        call.answer(200, pod("db-0", "4"));
    });
    assert_eq!(written, Ok(()));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn another_pod_of_that_name_is_not_annotated() {
    let (cluster, mut server) = cluster();
    let db0 = PodRef {
        namespace: "ns".into(),
        name: "db-0".into(),
        uid: Uid::new("uid-db-0"),
    };
    let words = "Pod \"db-0\" is invalid: metadata.uid: Invalid value: \"x\": field is immutable";
    for (code, body) in [
        (422, status(422, "Invalid", words)),
        (409, status(409, "Conflict", "other UID")),
    ] {
        let (written, ()) = tokio::join!(cluster.remove_pod_annotation(&db0, "a"), async {
            server.next().await.answer(code, body);
        });
        assert!(matches!(written, Err(WriteError::Conflict { .. })), "{written:?}");
    }
    let (written, ()) = tokio::join!(cluster.remove_pod_annotation(&db0, "a"), async {
        server.next().await.answer(404, not_found("pods", "db-0"));
    });
    assert!(written.unwrap_err().is_not_found());
    server.finish(cluster).await;
}

fn condition(kind: &'static str, status: &'static str) -> NodeCondition {
    NodeCondition {
        kind,
        status,
        reason: "R".into(),
        message: "m".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn conditions_keep_their_moment_unless_their_status_changes() {
    let (cluster, mut server) = cluster();
    let with = |status: &str| {
        let mut node = node("2");
        node["status"]["conditions"] =
            json!([{"type": "Drained", "status": status}, {"type": "Ready", "status": "True"}]);
        node
    };
    let wanted = [
        condition("DrainInProgress", "True"),
        condition("Drained", "False"),
    ];
    let (written, ()) = tokio::join!(cluster.set_node_conditions("n1", &wanted), async {
        server
            .expect("GET", "/api/v1/nodes/n1")
            .await
            .answer(200, with("False"));
        let call = server.expect("PATCH", "/api/v1/nodes/n1/status").await;
        assert_eq!(call.content_type, "application/strategic-merge-patch+json");
        let now = "2026-09-01T10:00:00Z";
        let new = json!({"type": "DrainInProgress", "status": "True", "reason": "R", "message": "m",
                         "lastHeartbeatTime": now, "lastTransitionTime": now});
        let same = json!({"type": "Drained", "status": "False", "reason": "R", "message": "m",
                          "lastHeartbeatTime": now});
        assert_eq!(call.body, json!({"status": {"conditions": [new, same]}}));
        call.answer(200, with("False"));
    });
    assert_eq!(written, Ok(()));
    let drained = [condition("Drained", "True")];
    // The answer to the last write contains the current state: no need to read it again.
    let (written, ()) = tokio::join!(cluster.set_node_conditions("n1", &drained), async {
        let call = server.expect("PATCH", "/api/v1/nodes/n1/status").await;
        assert!(call.body["status"]["conditions"][0]["lastTransitionTime"].is_string());
        call.answer(200, with("True"));
    });
    assert_eq!(written, Ok(()));
    let (written, ()) = tokio::join!(cluster.set_node_conditions("n1", &drained), async {
        let call = server.expect("PATCH", "/api/v1/nodes/n1/status").await;
        assert!(call.body["status"]["conditions"][0]["lastTransitionTime"].is_null());
        call.fail(503, "", "later");
    });
    assert!(written.unwrap_err().is_temporary());
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn events() {
    let (cluster, mut server) = cluster();
    let event = KubernetesEvent {
        node: "n1".into(),
        severity: Severity::Warning,
        reason: "DrainBlocked".into(),
        action: "Drain".into(),
        note: "µ".repeat(600),
        series: None,
    };
    let (written, ()) = tokio::join!(cluster.emit(&event), async {
        let call = server
            .expect("POST", "/apis/events.k8s.io/v1/namespaces/default/events")
            .await;
        let wanted = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"generateName": "n1-", "namespace": "default"},
            "eventTime": "2026-09-01T10:00:00.000000Z", "type": "Warning",
            "reason": "DrainBlocked", "action": "Drain", "note": "µ".repeat(512),
            "regarding": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"},
            "reportingController": "scupper.dev/driver", "reportingInstance": "n1",
        });
        assert_eq!(call.body, wanted);
        call.answer(201, json!({"metadata": {"name": "n1-x7"}}));
    });
    assert_eq!(written, Ok(()));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn events_about_a_pod_stand_in_its_namespace() {
    let (cluster, mut server) = cluster();
    let event = KubernetesEvent {
        node: "n1".into(),
        severity: Severity::Normal,
        reason: "JobsRunning".into(),
        action: "RunPolicy".into(),
        note: "policy slurm: 3 jobs run".into(),
        series: None,
    };
    let pod = PodRef {
        namespace: "slurm".into(),
        name: "gpu-0".into(),
        uid: Uid::new("uid-gpu-0"),
    };
    let (written, ()) = tokio::join!(cluster.emit_about_pod(&event, &pod), async {
        let call = server
            .expect("POST", "/apis/events.k8s.io/v1/namespaces/slurm/events")
            .await;
        assert_eq!(
            call.body["metadata"],
            json!({"generateName": "gpu-0-", "namespace": "slurm"})
        );
        assert_eq!(
            call.body["regarding"],
            json!({"apiVersion": "v1", "kind": "Pod", "namespace": "slurm", "name": "gpu-0", "uid": "uid-gpu-0"})
        );
        assert_eq!(call.body["note"], "policy slurm: 3 jobs run");
        call.answer(201, json!({"metadata": {"name": "gpu-0-x7"}}));
    });
    assert_eq!(written, Ok(()));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_with_a_name_is_emitted_by_one_process_alone() {
    let (cluster, mut server) = cluster();
    let event = KubernetesEvent::of_node("n1", Severity::Normal, "PodsLeaveNode", "leaves node n1");
    let pod = PodRef {
        namespace: "ns".into(),
        name: "db-0".into(),
        uid: Uid::new("uid-db-0"),
    };
    let path = "/apis/events.k8s.io/v1/namespaces/ns/events";
    let emit = || cluster.emit_once(&event, "first", None, &pod);
    let (emitted, ()) = tokio::join!(emit(), async {
        let call = server.expect("POST", path).await;
        assert_eq!(call.body["metadata"], json!({"name": "first", "namespace": "ns"}));
        assert_eq!(call.body["regarding"]["name"], "db-0");
        call.answer(201, json!({"metadata": {"name": "first"}}));
    });
    assert_eq!(emitted, Ok(None));
    let (emitted, ()) = tokio::join!(emit(), async {
        let call = server.expect("POST", path).await;
        call.fail(
            409,
            "AlreadyExists",
            "events.events.k8s.io \"first\" already exists",
        );
        let call = server.expect("PATCH", &format!("{path}/first")).await;
        assert_eq!(call.body, json!({}));
        call.answer(200, json!({"eventTime": "2026-09-01T10:00:00.000000Z"}));
    });
    assert_eq!(emitted, Ok(Some(Time::from_millis(TEN))));
    server.finish(cluster).await;
}

fn uncordoned(times: u32, second: u64) -> KubernetesEvent {
    KubernetesEvent {
        node: "n1".into(),
        severity: Severity::Warning,
        reason: "UncordonedByOthers".into(),
        action: "Drain".into(),
        // This difference does not make it another Event.
        note: format!("as of {second}"),
        series: Some(Series {
            key: "drain-1".into(),
            times,
            last: Time::from_millis(TEN + second * 1000),
        }),
    }
}

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

#[tokio::test(start_paused = true)]
async fn a_repeated_event_increments_the_count_of_the_existing_one() {
    let (cluster, mut server) = cluster();
    let first = uncordoned(1, 0);
    let (written, ()) = tokio::join!(cluster.emit(&first), async {
        let call = server.expect("POST", EVENTS).await;
        assert_eq!(call.body["series"], Value::Null);
        call.answer(201, json!({"metadata": {"name": "n1-x7"}}));
    });
    assert_eq!(written, Ok(()));
    let patched = format!("{EVENTS}/n1-x7");
    for (times, second, count, time) in [(1, 5, 2, "10:00:05"), (4, 65, 6, "10:01:05")] {
        let again = uncordoned(times, second);
        let (written, ()) = tokio::join!(cluster.emit(&again), async {
            // An occurrence that was not written is counted with the next write.
            let call = server.expect("PATCH", &patched).await;
            assert_eq!(call.content_type, "application/merge-patch+json");
            let time = format!("2026-09-01T{time}.000000Z");
            assert_eq!(
                call.body,
                json!({"series": {"count": count, "lastObservedTime": time}})
            );
            call.answer(200, json!({"metadata": {"name": "n1-x7"}}));
        });
        assert_eq!(written, Ok(()));
    }
    // Another drain, reason, severity or pod: each makes another Event.
    let mut others = vec![uncordoned(1, 70); 3];
    others[0].series.as_mut().unwrap().key = "drain-2".into();
    others[1].reason = "Drained".into();
    others[2].severity = Severity::Normal;
    for other in others {
        let (written, ()) = tokio::join!(cluster.emit(&other), async {
            let call = server.expect("POST", EVENTS).await;
            call.answer(201, json!({"metadata": {"name": "n1-x8"}}));
        });
        assert_eq!(written, Ok(()));
    }
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_event_is_recreated_and_a_failed_write_is_retried_unchanged() {
    let (cluster, mut server) = cluster();
    let first = uncordoned(1, 0);
    let (written, ()) = tokio::join!(cluster.emit(&first), async {
        let call = server.next().await;
        call.answer(201, json!({"metadata": {"name": "n1-x7"}}));
    });
    assert_eq!(written, Ok(()));
    let patched = format!("{EVENTS}/n1-x7");
    let again = uncordoned(2, 60);
    let (written, ()) = tokio::join!(cluster.emit(&again), async {
        server
            .expect("PATCH", &patched)
            .await
            .fail(503, "ServiceUnavailable", "later");
    });
    assert!(written.unwrap_err().is_temporary());
    let (written, ()) = tokio::join!(cluster.emit(&again), async {
        let call = server.expect("PATCH", &patched).await;
        assert_eq!(call.body["series"]["count"], 3);
        call.answer(404, not_found("events", "n1-x7"));
        let call = server.expect("POST", EVENTS).await;
        assert_eq!(call.body["note"], "as of 60");
        assert_eq!(
            call.body["series"],
            json!({"count": 2, "lastObservedTime": "2026-09-01T10:01:00.000000Z"})
        );
        call.answer(201, json!({"metadata": {"name": "n1-x9"}}));
    });
    assert_eq!(written, Ok(()));
    let (written, ()) = tokio::join!(cluster.emit(&again), async {
        let call = server.expect("PATCH", &format!("{EVENTS}/n1-x9")).await;
        assert_eq!(call.body["series"]["count"], 4);
        call.answer(200, json!({"metadata": {"name": "n1-x9"}}));
    });
    assert_eq!(written, Ok(()));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn an_existing_and_a_missing_node() {
    let (cluster, mut server) = cluster();
    let (found, ()) = tokio::join!(cluster.node("n1"), async {
        server
            .expect("GET", "/api/v1/nodes/n1")
            .await
            .answer(200, node("2"));
    });
    assert_eq!(found.unwrap().unwrap().resource_version, "2");
    let (found, ()) = tokio::join!(cluster.node("n1"), async {
        server.next().await.answer(404, not_found("nodes", "n1"));
    });
    assert_eq!(found, Ok(None));
    // A proxy's 404 does not say that the node does not exist.
    let (found, ()) = tokio::join!(cluster.node("n1"), async {
        server.next().await.answer(404, json!("page not found"));
    });
    assert!(matches!(found, Err(ReadError::Unexpected { .. })), "{found:?}");
    let (found, ()) = tokio::join!(cluster.node("../pods?x"), async {
        server
            .expect("GET", "/api/v1/nodes/..%2Fpods%3Fx")
            .await
            .answer(404, not_found("nodes", "x"));
    });
    assert_eq!(found, Ok(None));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn preflight_distinguishes_the_reasons() {
    let (cluster, mut server) = cluster();
    let (checked, ()) = tokio::join!(cluster.preflight("n1"), async {
        server
            .expect("GET", "/api/v1/nodes/n1")
            .await
            .answer(200, node("2"));
        let call = server.expect("GET", "/api/v1/pods").await;
        assert_eq!(
            (call.query("fieldSelector"), call.query("limit")),
            (Some("spec.nodeName=n1"), Some("1"))
        );
        call.answer(200, json!({"metadata": {}, "items": []}));
    });
    assert_eq!(checked, Ok(()));
    let (checked, ()) = tokio::join!(cluster.preflight("n1"), async {
        server.next().await.answer(404, not_found("nodes", "n1"));
    });
    assert_eq!(checked.unwrap_err().to_string(), "there is no node n1");
    let (checked, ()) = tokio::join!(cluster.preflight("n1"), async {
        server.next().await.answer(200, node("2"));
        server.next().await.fail(403, "Forbidden", "pods is forbidden");
    });
    assert!(matches!(checked, Err(ReadError::Forbidden { what, .. }) if what == "list pods"));
    let (checked, ()) = tokio::join!(cluster.preflight("n1"), async {
        server.next().await.fail(401, "Unauthorized", "Unauthorized");
    });
    assert!(matches!(checked, Err(ReadError::Unauthorized { .. })));
    let (checked, ()) = tokio::join!(cluster.preflight("n1"), async { server.next().await.break_off() });
    assert!(matches!(checked, Err(ReadError::Unavailable { .. })));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_of_a_secret() {
    let (cluster, mut server) = cluster();
    let path = "/api/v1/namespaces/slurm/secrets/auth";
    let secret = json!({"metadata": {"name": "auth"}, "data": {"token": "aHVudGVyMg==", "odd": "!"}});
    for (key, reported) in [
        ("token", Ok(b"hunter2".to_vec())),
        (
            "other",
            Err(ReadError::NotFound {
                what: "key other of secret slurm/auth".to_owned(),
            }),
        ),
        (
            "odd",
            Err(ReadError::Unexpected {
                what: "secret slurm/auth".to_owned(),
                message: "its value is not valid base64".to_owned(),
            }),
        ),
    ] {
        let (read, ()) = tokio::join!(cluster.secret("slurm", "auth", key), async {
            server.expect("GET", path).await.answer(200, secret.clone());
        });
        assert_eq!(read, reported);
    }
    let (read, ()) = tokio::join!(cluster.secret("slurm", "auth", "token"), async {
        let refusal = status(403, "Forbidden", "secrets \"auth\" is forbidden");
        server.expect("GET", path).await.answer(403, refusal);
    });
    assert!(matches!(read, Err(ReadError::Forbidden { .. })), "{read:?}");
    server.finish(cluster).await;
}
