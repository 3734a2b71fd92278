//! A claimant's writes of LifecycleEvents: each write names the version that it was decided on.

use scupper_api::{ClaimStatus, VersionedEvent};
use scupper_cluster::{LifecycleEventStatus, OFFICIAL_GROUP, OWN_GROUP, WriteError, needed};
use scupper_engine::Time;
use serde_json::{Value, json};

use crate::script::{cluster, not_found};

const EVENT: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/e";
const STATUS: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/e/status";

fn event(version: &str, finalizers: &[&str]) -> Value {
    json!({
        "metadata": {"name": "e", "uid": "uid-e", "resourceVersion": version, "finalizers": finalizers,
                     "creationTimestamp": "1970-01-01T00:00:07Z"},
        "spec": {"transitionName": "t", "bindingNode": "n1"},
        "status": {"claimStatus": "Pending"},
    })
}

async fn seen(finalizers: &[&str]) -> VersionedEvent {
    let (cluster, mut server) = cluster();
    let (seen, ()) = tokio::join!(cluster.stored_event("e"), async {
        server
            .expect("GET", EVENT)
            .await
            .answer(200, event("7", finalizers));
    });
    server.finish(cluster).await;
    seen.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_event_is_read_with_all_that_a_write_must_name() {
    let seen = seen(&["example.com/hold"]).await;
    assert_eq!(
        (seen.version.as_str(), &seen.finalizers[..]),
        ("7", &["example.com/hold".to_owned()][..])
    );
    assert_eq!(seen.event.created, Some(Time::from_millis(7000)));
    let (cluster, mut server) = cluster();
    let (gone, ()) = tokio::join!(cluster.stored_event("e"), async {
        let call = server.expect("GET", EVENT).await;
        call.answer(404, not_found("lifecycleevents", "e"));
    });
    assert_eq!(gone, Ok(None));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn writes_name_the_uid_and_the_version() {
    let seen = seen(&[]).await;
    let named = json!({"uid": "uid-e", "resourceVersion": "7"});
    let (cluster, mut server) = cluster();
    let hold = ["a".to_owned()];
    let (written, ()) = tokio::join!(cluster.set_event_finalizers(&seen, &hold), async {
        let call = server.expect("PATCH", EVENT).await;
        assert_eq!(call.content_type, "application/merge-patch+json");
        let mut metadata = named.clone();
        metadata["finalizers"] = json!(["a"]);
        assert_eq!(call.body, json!({ "metadata": metadata }));
        call.answer(200, event("8", &["a"]));
    });
    assert_eq!(written.unwrap().version, "8");

    let status = LifecycleEventStatus {
        claim: ClaimStatus::Claimed,
        driver: Some("d".to_owned()),
        sla: Some(Time::from_millis(61_999)),
    };
    let (written, ()) = tokio::join!(cluster.set_event_status(&seen, &status), async {
        let call = server.expect("PATCH", STATUS).await;
        let fields = json!({"claimStatus": "Claimed", "driver": "d", "sla": "1970-01-01T00:01:01Z"});
        assert_eq!(call.body, json!({"metadata": named, "status": fields}));
        call.answer(200, event("8", &["a"]));
    });
    assert!(written.is_ok());
    let status = LifecycleEventStatus {
        claim: ClaimStatus::Succeeded,
        ..LifecycleEventStatus::default()
    };
    let (written, ()) = tokio::join!(cluster.set_event_status(&seen, &status), async {
        let call = server.expect("PATCH", STATUS).await;
        assert_eq!(call.body["status"], json!({"claimStatus": "Succeeded"}));
        call.fail(409, "Conflict", "the object has been modified");
    });
    assert!(matches!(written, Err(WriteError::Conflict { .. })));
    let (written, ()) = tokio::join!(cluster.set_event_finalizers(&seen, &[]), async {
        let call = server.expect("PATCH", EVENT).await;
        call.fail(422, "Invalid", "metadata.uid: Invalid value: field is immutable");
    });
    assert!(
        matches!(written, Err(WriteError::Conflict { .. })),
        "another object's"
    );
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_event_that_was_seen_is_deleted() {
    let seen = seen(&[]).await;
    let (cluster, mut server) = cluster();
    let (deleted, ()) = tokio::join!(cluster.delete_event(&seen.event), async {
        let call = server.expect("DELETE", EVENT).await;
        assert_eq!(call.body["preconditions"], json!({"uid": "uid-e"}));
        call.answer(404, not_found("lifecycleevents", "e"));
    });
    assert_eq!(deleted, Ok(()));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn the_condition_is_written_as_a_kubelet_writes_it() {
    let (cluster, mut server) = cluster();
    let (written, ()) = tokio::join!(cluster.set_transition_reason("n1", "s", "words"), async {
        let call = server.expect("PATCH", "/api/v1/nodes/n1/status").await;
        assert_eq!(call.content_type, "application/strategic-merge-patch+json");
        let condition = &call.body["status"]["conditions"][0];
        for (field, value) in [
            ("type", "LifecycleTransition"),
            ("status", "True"),
            ("reason", "s"),
            ("message", "words"),
        ] {
            assert_eq!(condition[field], value);
        }
        assert!(condition["lastHeartbeatTime"].is_string());
        assert_eq!(condition["lastHeartbeatTime"], condition["lastTransitionTime"]);
        call.answer(200, crate::script::node("9"));
    });
    assert_eq!(written, Ok(()));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn the_official_group_comes_first_and_ours_second() {
    let whole = json!({"resources": [{"name": "lifecycleevents"}, {"name": "lifecycletransitions"}]});
    let native = json!({"resources": [{"name": "evictionrequests"}]});
    for (official, own, wanted) in [
        (&whole, None, Some(OFFICIAL_GROUP)),
        (&native, Some(&whole), Some(OWN_GROUP)),
        (&native, Some(&native), None),
    ] {
        let (cluster, mut server) = cluster();
        let (found, ()) = tokio::join!(cluster.clone().in_served_group(), async {
            let call = server.expect("GET", "/apis/lifecycle.k8s.io/v1alpha1").await;
            call.answer(200, official.clone());
            if let Some(own) = own {
                let call = server.expect("GET", "/apis/lifecycle.scupper.dev/v1alpha1").await;
                call.answer(200, own.clone());
            }
        });
        let found = found.unwrap();
        assert_eq!(found.as_ref().map(|found| found.lifecycle_group()), wanted);
        drop(found);
        server.finish(cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_is_checked_by_its_name() {
    let claim: Vec<_> = needed(OWN_GROUP, true, "scupper")
        .into_iter()
        .filter(|right| right.subresource == "status" && right.group == OWN_GROUP)
        .collect();
    assert_eq!(claim.len(), 1);
    assert!(needed(OWN_GROUP, false, "scupper").len() < needed(OWN_GROUP, true, "scupper").len());
    let (cluster, mut server) = cluster();
    let (missing, ()) = tokio::join!(cluster.missing_rights(claim.clone(), "n1"), async {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let call = server.expect("POST", path).await;
        let asked = &call.body["spec"]["resourceAttributes"];
        assert_eq!(asked["resource"], "lifecycleevents");
        assert_eq!(
            (&asked["subresource"], &asked["verb"]),
            (&json!("status"), &json!("patch"))
        );
        call.answer(201, json!({"status": {"allowed": false}}));
    });
    let missing = missing.unwrap();
    assert_eq!(missing, claim);
    assert_eq!(
        missing[0].name(),
        "patch lifecycleevents/status.lifecycle.scupper.dev"
    );
    server.finish(cluster).await;
}
