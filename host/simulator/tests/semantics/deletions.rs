//! `DELETE`, grace and finalizers.

use std::time::Duration;

use serde_json::{Value, json};

use super::Case;
use super::subject::{Subject, pod, ready};
use crate::cases;

pub(crate) fn cases() -> Vec<Case> {
    use super::deletions;
    cases! {
        Nothing: deletions::running_pod;
        Nothing: deletions::grace_zero;
        Nothing: deletions::wrong_uid;
        Nothing: deletions::old_resource_version;
        Nothing: deletions::gone;
        Nothing: deletions::a_finalizer_holds;
        Nothing: deletions::no_finalizer_is_added_to_what_goes;
        Nothing: deletions::a_pod_killed_at_the_end_of_its_grace;
        Nothing: deletions::a_collection;
        Nothing: deletions::a_budget_answers_with_a_status;
    }
}

async fn running_pod(on: Subject) {
    on.runs_with("a", json!({"testbed/takes": "25"})).await;
    let reply = on.delete(&on.pod_path("a"), Value::Null).await.is(200);
    assert_eq!(reply.at("/kind"), "Pod");
    assert!(reply.at("/metadata/deletionTimestamp").is_string());
    assert_eq!(reply.at("/metadata/deletionGracePeriodSeconds"), 30);
    assert_eq!(reply.at("/metadata/generation"), 2);
}

async fn grace_zero(on: Subject) {
    on.runs_with("a", json!({"testbed/takes": "25"})).await;
    let reply = on
        .delete(&on.pod_path("a"), json!({"gracePeriodSeconds": 0}))
        .await
        .is(200);
    assert_eq!(reply.at("/kind"), "Pod");
    on.get(&on.pod_path("a")).await.is(404);
}

async fn wrong_uid(on: Subject) {
    let pod = on.runs_with("a", json!({"testbed/takes": "25"})).await;
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let message = format!(
        "Operation cannot be fulfilled on Pod \"a\": the UID in the precondition (other) does not match the UID in record \
         ({uid}). The object might have been deleted and then recreated"
    );
    let wrong = json!({"preconditions": {"uid": "other"}});
    let details = json!({"name": "a", "kind": "Pod"});
    let reply = on.delete(&on.pod_path("a"), wrong.clone()).await;
    reply.is_refusal(409, json!("Conflict"), &message, details.clone());
    on.delete(&on.pod_path("a"), Value::Null).await.is(200);
    let reply = on.delete(&on.pod_path("a"), wrong).await;
    reply.is_refusal(409, json!("Conflict"), &message, details);
    assert!(reply.took < Duration::from_secs(3), "{:?}", reply.took);
}

async fn old_resource_version(on: Subject) {
    let pod = on.runs("a").await;
    let version = pod["metadata"]["resourceVersion"].as_str().unwrap();
    let reply = on
        .delete(
            &on.pod_path("a"),
            json!({"preconditions": {"resourceVersion": "1"}}),
        )
        .await;
    let message = format!(
        "Operation cannot be fulfilled on Pod \"a\": the ResourceVersion in the precondition (1) does not match the \
         ResourceVersion in record ({version}). The object might have been modified"
    );
    reply.is_refusal(
        409,
        json!("Conflict"),
        &message,
        json!({"name": "a", "kind": "Pod"}),
    );
}

async fn gone(on: Subject) {
    let reply = on.delete(&on.pod_path("nope"), Value::Null).await;
    reply.is_refusal(
        404,
        json!("NotFound"),
        "pods \"nope\" not found",
        json!({"name": "nope", "kind": "pods"}),
    );
}

async fn a_finalizer_holds(on: Subject) {
    let mut held = pod("a", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    on.made(held).await;
    on.pod_is("a", |pod| ready(pod) == "True").await;
    on.evict("a", json!({})).await.is(201);
    on.pod_is("a", |pod| {
        pod["metadata"]["deletionGracePeriodSeconds"] == 0 && pod["status"]["phase"] == "Succeeded"
    })
    .await;
    on.merge(&on.pod_path("a"), json!({"metadata": {"finalizers": null}}))
        .await
        .is(200);
    on.get(&on.pod_path("a")).await.is(404);
}

async fn no_finalizer_is_added_to_what_goes(on: Subject) {
    on.runs_with("a", json!({"testbed/takes": "25"})).await;
    on.delete(&on.pod_path("a"), Value::Null).await.is(200);
    let reply = on
        .merge(
            &on.pod_path("a"),
            json!({"metadata": {"finalizers": ["example.com/late"]}}),
        )
        .await;
    let why = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \
               []string{\"example.com/late\"}";
    let message = format!("Pod \"a\" is invalid: metadata.finalizers: {why}");
    let details = json!({"name": "a", "kind": "Pod",
        "causes": [{"reason": "FieldValueForbidden", "message": why, "field": "metadata.finalizers"}]});
    reply.is_refusal(422, json!("Invalid"), &message, details);
}

async fn a_pod_killed_at_the_end_of_its_grace(on: Subject) {
    let mut held = pod("a", json!({"testbed/takes": "25"}));
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    on.made(held).await;
    on.pod_is("a", |pod| ready(pod) == "True").await;
    on.delete(&on.pod_path("a"), json!({"gracePeriodSeconds": 1}))
        .await
        .is(200);
    let pod = on.pod_is("a", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"],
        137
    );
    on.merge(&on.pod_path("a"), json!({"metadata": {"finalizers": null}}))
        .await
        .is(200);
}

async fn a_collection(on: Subject) {
    on.runs("a").await;
    on.runs("b").await;
    let reply = on
        .delete(
            &format!("{}?labelSelector=app%3Dit", on.pods()),
            json!({"gracePeriodSeconds": 0}),
        )
        .await;
    assert_eq!(reply.is(200).at("/kind"), "PodList");
    on.pod_goes("a").await;
    on.pod_goes("b").await;
}

async fn a_budget_answers_with_a_status(on: Subject) {
    on.budget_made("one", json!({"minAvailable": 1})).await;
    let uid = on.get(&on.budget_path("one")).await.at("/metadata/uid");
    let reply = on.delete(&on.budget_path("one"), Value::Null).await.is(200);
    assert_eq!(
        (reply.at("/kind"), reply.at("/status")),
        (json!("Status"), json!("Success"))
    );
    let details = json!({"name": "one", "group": "policy", "kind": "poddisruptionbudgets", "uid": uid});
    assert_eq!(reply.at("/details"), details);
}
