//! The taint `out-of-service`: only on a node that is silent, as it was read, and removed only where it is ours.

use scupper_cluster::{OutOfService, SeenAt, SignOfLife, WriteError};
use scupper_engine::Uid;
use serde_json::{Value, json};

use crate::script::{Script, cluster, not_found};

const NODE: &str = "/api/v1/nodes/n1";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";
const MARK: &str = "scupper.dev/out-of-service";

fn cordoned() -> Value {
    json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
}

fn taint() -> Value {
    json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"})
}

/// The taint as another client sets it.
fn theirs() -> Value {
    json!({"key": "node.kubernetes.io/out-of-service", "value": "ticket-7", "effect": "NoExecute"})
}

fn node(ready: Option<&str>, taints: &[Value], mark: Option<&str>) -> Value {
    let ready = ready.map(|status| json!({"type": "Ready", "status": status}));
    let annotations: std::collections::BTreeMap<_, _> = mark.map(|drain| (MARK, drain)).into_iter().collect();
    json!({
        "metadata": {"name": "n1", "uid": "u-1", "resourceVersion": "7", "annotations": annotations},
        "spec": {"unschedulable": true, "taints": taints},
        "status": {"conditions": ready.into_iter().collect::<Vec<_>>()},
    })
}

/// Answers the read of the node.
async fn reads(server: &mut Script, node: Value) {
    server.expect("GET", NODE).await.answer(200, node);
}

/// Answers the reads of the node and of its kubelet's Lease, which was renewed at this time.
async fn looks(server: &mut Script, node: Value, renewed: Option<&str>) {
    reads(server, node).await;
    let call = server.expect("GET", LEASE).await;
    match renewed {
        Some(renewed) => call.answer(
            200,
            json!({
                "metadata": {"name": "n1", "namespace": "kube-node-lease", "uid": "l-1", "resourceVersion": "3"},
                "spec": {"leaseDurationSeconds": 40, "renewTime": renewed},
            }),
        ),
        None => call.answer(404, not_found("leases", "n1")),
    }
}

const LONG_AGO: Option<&str> = Some("1970-01-01T00:00:00.000000Z");

#[tokio::test(start_paused = true)]
async fn a_silent_node_is_tainted_in_a_write_for_what_was_read() {
    for renewed in [LONG_AGO, None] {
        let (cluster, mut server) = cluster();
        let uid = Uid::new("u-1");
        let marking = cluster.mark_out_of_service("n1", &uid, "drain-1", None);
        let (marked, ()) = tokio::join!(marking, async {
            looks(&mut server, node(Some("Unknown"), &[cordoned()], None), renewed).await;
            let call = server.expect("PATCH", NODE).await;
            let patch = json!({
                "metadata": {"uid": "u-1", "resourceVersion": "7", "annotations": {MARK: "drain-1"}},
                "spec": {"taints": [cordoned(), taint()]},
            });
            assert_eq!(call.body, patch);
            call.answer(200, json!({}));
        });
        assert_eq!(marked, Ok(OutOfService::Marked));
        server.finish(cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_renewed_or_cannot_be_read_keeps_the_taint_away() {
    let (cluster, mut server) = cluster();
    let uid = Uid::new("u-1");
    let unknown = || node(Some("Unknown"), &[cordoned()], None);
    let (marked, ()) = tokio::join!(
        cluster.mark_out_of_service("n1", &uid, "drain-1", None),
        looks(&mut server, unknown(), Some("2100-01-01T00:00:00.000000Z"))
    );
    let is_renewed = matches!(
        marked,
        Ok(OutOfService::Alive(SignOfLife::Renewed(SeenAt::Ahead(_))))
    );
    assert!(is_renewed, "{marked:?}");
    let (marked, ()) = tokio::join!(cluster.mark_out_of_service("n1", &uid, "drain-1", None), async {
        reads(&mut server, unknown()).await;
        server
            .expect("GET", LEASE)
            .await
            .fail(403, "Forbidden", "not yours");
    });
    assert!(marked.as_ref().is_err_and(WriteError::is_forbidden), "{marked:?}");
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_may_be_alive_or_has_the_taint_or_no_cordon_is_not_written() {
    let mut uncordoned = node(Some("Unknown"), &[], None);
    uncordoned["spec"]["unschedulable"] = Value::Null;
    let reported = |status: &str| {
        OutOfService::Alive(SignOfLife::Reported {
            status: status.to_owned(),
            why: String::new(),
            at: None,
        })
    };
    let cases = [
        (node(Some("True"), &[], None), reported("True")),
        (node(Some("False"), &[], None), reported("False")),
        (
            node(None, &[], None),
            OutOfService::Alive(SignOfLife::NoCondition),
        ),
        (node(Some("True"), &[taint()], None), reported("True")),
        (node(Some("Unknown"), &[taint()], None), OutOfService::Found),
        (
            node(Some("Unknown"), &[taint()], Some("drain-0")),
            OutOfService::Found,
        ),
        (
            node(Some("Unknown"), &[theirs()], Some("drain-1")),
            OutOfService::Found,
        ),
        // The answer to the write was lost.
        (
            node(Some("Unknown"), &[taint()], Some("drain-1")),
            OutOfService::Marked,
        ),
        (uncordoned, OutOfService::Uncordoned),
    ];
    for (read, expected) in cases {
        let (cluster, mut server) = cluster();
        let uid = Uid::new("u-1");
        let (marked, ()) = tokio::join!(
            cluster.mark_out_of_service("n1", &uid, "drain-1", None),
            looks(&mut server, read, LONG_AGO)
        );
        assert_eq!(marked, Ok(expected));
        server.finish(cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_changes_meanwhile_or_is_another_one_is_a_conflict() {
    let (cluster, mut server) = cluster();
    let uid = Uid::new("u-1");
    let marking = cluster.mark_out_of_service("n1", &uid, "drain-1", None);
    let (marked, ()) = tokio::join!(marking, async {
        looks(&mut server, node(Some("Unknown"), &[], None), LONG_AGO).await;
        let call = server.expect("PATCH", NODE).await;
        call.fail(409, "Conflict", "the object has been modified");
    });
    assert!(matches!(marked, Err(WriteError::Conflict { .. })), "{marked:?}");
    let other = Uid::new("u-0");
    let (marked, ()) = tokio::join!(
        cluster.mark_out_of_service("n1", &other, "drain-1", None),
        reads(&mut server, node(Some("Unknown"), &[], None))
    );
    assert!(matches!(marked, Err(WriteError::Conflict { .. })), "{marked:?}");
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn only_our_own_taint_is_removed() {
    let kept = [
        (None, None),
        (None, Some("drain-1")),
        (Some("drain-0"), Some("drain-1")),
    ];
    for (mark, drain) in kept {
        let (cluster, mut server) = cluster();
        let (removed, ()) = tokio::join!(
            cluster.unmark_out_of_service("n1", drain),
            reads(&mut server, node(Some("True"), &[taint()], mark))
        );
        assert_eq!(removed, Ok(false), "{mark:?} {drain:?}");
        server.finish(cluster).await;
    }
    for drain in [None, Some("drain-1")] {
        let (cluster, mut server) = cluster();
        let (removed, ()) = tokio::join!(cluster.unmark_out_of_service("n1", drain), async {
            reads(
                &mut server,
                node(Some("Unknown"), &[cordoned(), taint()], Some("drain-1")),
            )
            .await;
            let call = server.expect("PATCH", NODE).await;
            let patch = json!({
                "metadata": {"uid": "u-1", "resourceVersion": "7", "annotations": {MARK: null}},
                "spec": {"taints": [cordoned()]},
            });
            assert_eq!(call.body, patch);
            call.answer(200, json!({}));
        });
        assert_eq!(removed, Ok(true));
        server.finish(cluster).await;
    }
}

/// An operator has replaced the taint by one of their own, or added another.
#[tokio::test(start_paused = true)]
async fn a_taint_that_another_client_set_meanwhile_stays() {
    let other_effect = json!({"key": "node.kubernetes.io/out-of-service", "effect": "NoSchedule"});
    for (found, kept, expected) in [
        (vec![theirs()], vec![theirs()], false),
        (vec![taint(), other_effect.clone()], vec![other_effect], true),
    ] {
        let (cluster, mut server) = cluster();
        let (removed, ()) = tokio::join!(cluster.unmark_out_of_service("n1", None), async {
            reads(&mut server, node(Some("Unknown"), &found, Some("drain-1"))).await;
            let call = server.expect("PATCH", NODE).await;
            assert_eq!(call.body["spec"]["taints"], json!(kept));
            assert_eq!(call.body["metadata"]["annotations"], json!({MARK: null}));
            call.answer(200, json!({}));
        });
        assert_eq!(removed, Ok(expected));
        server.finish(cluster).await;
    }
}
