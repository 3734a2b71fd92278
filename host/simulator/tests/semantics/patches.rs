//! Creating, replacing, patching; conflicts.

use serde_json::{Value, json};

use super::Case;
use super::subject::{Reply, Subject, pod};
use crate::cases;

pub(crate) fn cases() -> Vec<Case> {
    use super::patches;
    cases! {
        Nothing: patches::merge;
        Nothing: patches::merge_of_an_old_version;
        Nothing: patches::strategic_merge_of_conditions;
        Nothing: patches::strategic_merge_of_maps;
        Nothing: patches::json_patch;
        Nothing: patches::json_patch_whose_test_fails;
        Nothing: patches::json_patch_over_a_version;
        Nothing: patches::a_patch_of_another_uid;
        Nothing: patches::nothing_changes;
        Nothing: patches::a_status_patch_leaves_the_spec;
        Nothing: patches::a_main_patch_leaves_the_status;
        Nothing: patches::put_of_an_old_version;
        Nothing: patches::put_of_another_uid;
        Nothing: patches::put_of_what_is_not_there;
        Nothing: patches::created_twice;
        Nothing: patches::created_in_no_namespace;
        Nothing: patches::dry_run;
        Nothing: patches::a_spec_change_counts;
        Nothing: patches::not_served;
        Nothing: patches::an_event_about_a_node;
        Nothing: patches::an_event_that_lacks_something;
        Nothing: patches::an_event_is_counted_up;
        Nothing: patches::a_repeated_event_keeps_its_text;
        Nothing: patches::an_event_that_has_expired;
    }
}

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON: &str = "application/json-patch+json";

/// A node for this case.
async fn node(on: &Subject) -> String {
    let object =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": on.namespace, "labels": {"a": "1"}}});
    on.post("/api/v1/nodes", object).await.is(201);
    format!("/api/v1/nodes/{}", on.namespace)
}

fn reasons(node: &Value) -> Vec<String> {
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let ours = conditions
        .iter()
        .filter(|it| ["One", "Two"].contains(&it["type"].as_str().unwrap()));
    ours.map(|it| {
        format!(
            "{}={}",
            it["type"].as_str().unwrap(),
            it["reason"].as_str().unwrap()
        )
    })
    .collect()
}

fn condition(kind: &str, reason: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": reason, "message": "m"}]}})
}

async fn merge(on: Subject) {
    on.runs("a").await;
    let patch = json!({"metadata": {"annotations": {"x": "1", "y": "2"}}});
    on.merge(&on.pod_path("a"), patch).await.is(200);
    let reply = on
        .merge(
            &on.pod_path("a"),
            json!({"metadata": {"annotations": {"x": null, "y": "3"}}}),
        )
        .await
        .is(200);
    assert_eq!(reply.at("/metadata/annotations/x"), Value::Null);
    assert_eq!(reply.at("/metadata/annotations/y"), "3");
}

fn modified(resource: &str, name: &str) -> String {
    format!(
        "Operation cannot be fulfilled on {resource} \"{name}\": the object has been modified; please apply your changes \
         to the latest version and try again"
    )
}

async fn merge_of_an_old_version(on: Subject) {
    on.runs("a").await;
    let patch = json!({"metadata": {"resourceVersion": "1", "annotations": {"x": "1"}}});
    let reply = on.merge(&on.pod_path("a"), patch).await;
    reply.is_refusal(
        409,
        json!("Conflict"),
        &modified("pods", "a"),
        json!({"name": "a", "kind": "pods"}),
    );
}

async fn strategic_merge_of_conditions(on: Subject) {
    let path = node(&on).await;
    let status = format!("{path}/status");
    on.ask("PATCH", &status, STRATEGIC, condition("One", "First"))
        .await
        .is(200);
    on.ask("PATCH", &status, STRATEGIC, condition("Two", "Second"))
        .await
        .is(200);
    let reply = on
        .ask("PATCH", &status, STRATEGIC, condition("One", "Changed"))
        .await
        .is(200);
    let mut found = reasons(&reply.body);
    found.sort();
    assert_eq!(found, ["One=Changed", "Two=Second"]);
    let remove = json!({"status": {"conditions": [{"$patch": "delete", "type": "One"}]}});
    let reply = on.ask("PATCH", &status, STRATEGIC, remove).await.is(200);
    assert_eq!(reasons(&reply.body), ["Two=Second"]);
    on.delete(&path, Value::Null).await.is(200);
}

async fn strategic_merge_of_maps(on: Subject) {
    let path = node(&on).await;
    let patch = json!({"metadata": {"labels": {"b": "2"}, "annotations": {"example.com/x": "1"}}, "spec": {"unschedulable": true}});
    let reply = on.ask("PATCH", &path, STRATEGIC, patch).await.is(200);
    assert_eq!(
        (reply.at("/metadata/labels/a"), reply.at("/metadata/labels/b")),
        (json!("1"), json!("2"))
    );
    assert_eq!(reply.at("/spec/unschedulable"), true);
    let patch = json!({"metadata": {"labels": {"b": null}}, "spec": {"unschedulable": null}});
    let reply = on.ask("PATCH", &path, STRATEGIC, patch).await.is(200);
    assert_eq!(
        (reply.at("/metadata/labels/b"), reply.at("/spec/unschedulable")),
        (Value::Null, Value::Null)
    );
    on.delete(&path, Value::Null).await.is(200);
}

async fn json_patch(on: Subject) {
    on.runs("a").await;
    let patch = json!([
        {"op": "test", "path": "/metadata/labels/app", "value": "it"},
        {"op": "replace", "path": "/metadata/labels/app", "value": "other"},
        {"op": "add", "path": "/metadata/labels/example.com~1x", "value": "1"},
    ]);
    let reply = on.ask("PATCH", &on.pod_path("a"), JSON, patch).await.is(200);
    assert_eq!(
        (
            reply.at("/metadata/labels/app"),
            reply.at("/metadata/labels/example.com~1x")
        ),
        (json!("other"), json!("1"))
    );
}

async fn json_patch_whose_test_fails(on: Subject) {
    on.runs("a").await;
    let patch = json!([
        {"op": "test", "path": "/metadata/labels/app", "value": "other"},
        {"op": "replace", "path": "/metadata/labels/app", "value": "changed"},
    ]);
    let reply = on.ask("PATCH", &on.pod_path("a"), JSON, patch).await;
    let message = "the server rejected our request due to an error in our request";
    reply.is_refusal(422, json!("Invalid"), message, json!({}));
    assert_eq!(on.the_pod("a").await["metadata"]["labels"]["app"], "it");
}

async fn json_patch_over_a_version(on: Subject) {
    on.runs("a").await;
    let patch = json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/app", "value": "changed"},
    ]);
    on.ask("PATCH", &on.pod_path("a"), JSON, patch).await.is(409);
}

async fn a_patch_of_another_uid(on: Subject) {
    let path = node(&on).await;
    let made = on.get(&path).await.is(200);
    let with_uid = |uid: Value, version: Value| {
        json!({"metadata": {"uid": uid, "resourceVersion": version, "annotations": {"x": "1"}},
            "spec": {"unschedulable": true}})
    };
    let other = with_uid(json!("other"), Value::Null);
    let name = on.namespace.as_str();
    let message =
        format!("Node \"{name}\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable");
    let cause = json!({"reason": "FieldValueInvalid", "field": "metadata.uid",
        "message": "Invalid value: \"other\": field is immutable"});
    let details = json!({"name": name, "kind": "Node", "causes": [cause]});
    for how in ["application/merge-patch+json", STRATEGIC] {
        let reply = on.ask("PATCH", &path, how, other.clone()).await;
        reply.is_refusal(422, json!("Invalid"), &message, details.clone());
    }
    // The version is checked first.
    let reply = on.merge(&path, with_uid(json!("other"), json!("1"))).await;
    let details = json!({"name": name, "kind": "nodes"});
    reply.is_refusal(409, json!("Conflict"), &modified("nodes", name), details);
    let now = on.get(&path).await.is(200);
    assert_eq!(now.at("/metadata/annotations/x"), Value::Null);
    assert_eq!(now.at("/spec/unschedulable"), Value::Null);
    let own = with_uid(made.at("/metadata/uid"), Value::Null);
    on.merge(&path, own.clone()).await.is(200);
    on.delete(&path, Value::Null).await.is(200);
    let reply = on.merge(&path, own).await;
    let details = json!({"name": name, "kind": "nodes"});
    reply.is_refusal(
        404,
        json!("NotFound"),
        &format!("nodes \"{name}\" not found"),
        details,
    );
}

async fn nothing_changes(on: Subject) {
    let pod = on.runs("a").await;
    let reply = on
        .merge(&on.pod_path("a"), json!({"metadata": {"labels": {"app": "it"}}}))
        .await
        .is(200);
    assert_eq!(
        reply.at("/metadata/resourceVersion"),
        pod["metadata"]["resourceVersion"]
    );
}

async fn a_status_patch_leaves_the_spec(on: Subject) {
    let path = node(&on).await;
    let mut patch = condition("One", "First");
    patch["spec"] = json!({"unschedulable": true});
    let reply = on
        .ask("PATCH", &format!("{path}/status"), STRATEGIC, patch)
        .await
        .is(200);
    assert_eq!(reply.at("/spec/unschedulable"), Value::Null);
    on.delete(&path, Value::Null).await.is(200);
}

async fn a_main_patch_leaves_the_status(on: Subject) {
    let path = node(&on).await;
    let mut patch = condition("One", "First");
    patch["spec"] = json!({"unschedulable": true});
    let reply = on.ask("PATCH", &path, STRATEGIC, patch).await.is(200);
    assert_eq!(reply.at("/spec/unschedulable"), true);
    assert!(
        !reply.at("/status").to_string().contains("First"),
        "{}",
        reply.body
    );
    on.delete(&path, Value::Null).await.is(200);
}

async fn put_of_an_old_version(on: Subject) {
    let old = on.runs("a").await;
    on.merge(&on.pod_path("a"), json!({"metadata": {"labels": {"x": "1"}}}))
        .await
        .is(200);
    let reply = on.put(&on.pod_path("a"), old).await;
    reply.is_refusal(
        409,
        json!("Conflict"),
        &modified("pods", "a"),
        json!({"name": "a", "kind": "pods"}),
    );
}

async fn put_of_another_uid(on: Subject) {
    let mut other = on.runs("a").await;
    let uid = other["metadata"]["uid"].as_str().unwrap().to_owned();
    other["metadata"]["uid"] = json!("other");
    let reply = on.put(&on.pod_path("a"), other).await;
    let message = format!(
        "Operation cannot be fulfilled on pods \"a\": StorageError: invalid object, Code: 4, Key: /registry/pods/{}/a, \
         ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: {uid}",
        on.namespace
    );
    reply.is_refusal(
        409,
        json!("Conflict"),
        &message,
        json!({"name": "a", "kind": "pods"}),
    );
}

async fn put_of_what_is_not_there(on: Subject) {
    let mut object = pod("nope", json!({}));
    object["metadata"]["namespace"] = json!(on.namespace);
    let reply = on.put(&on.pod_path("nope"), object).await;
    reply.is_refusal(
        404,
        json!("NotFound"),
        "pods \"nope\" not found",
        json!({"name": "nope", "kind": "pods"}),
    );
}

async fn created_twice(on: Subject) {
    on.runs("a").await;
    let reply = on.post(&on.pods(), pod("a", json!({}))).await;
    let details = json!({"name": "a", "kind": "pods"});
    reply.is_refusal(409, json!("AlreadyExists"), "pods \"a\" already exists", details);
}

async fn created_in_no_namespace(on: Subject) {
    let reply = on.post("/api/v1/namespaces/nope/pods", pod("a", json!({}))).await;
    let details = json!({"name": "nope", "kind": "namespaces"});
    reply.is_refusal(404, json!("NotFound"), "namespaces \"nope\" not found", details);
}

async fn dry_run(on: Subject) {
    on.post(&format!("{}?dryRun=All", on.pods()), pod("a", json!({})))
        .await
        .is(201);
    on.get(&on.pod_path("a")).await.is(404);
    let before = on.runs("a").await;
    let path = format!("{}?dryRun=All", on.pod_path("a"));
    let reply = on
        .merge(&path, json!({"metadata": {"labels": {"x": "1"}}}))
        .await
        .is(200);
    assert_eq!(reply.at("/metadata/labels/x"), "1");
    on.delete(&path, Value::Null).await.is(200);
    assert_eq!(on.the_pod("a").await["metadata"], before["metadata"]);
}

async fn a_spec_change_counts(on: Subject) {
    on.budget_made("one", json!({"minAvailable": 1})).await;
    let reply = on
        .merge(&on.budget_path("one"), json!({"spec": {"minAvailable": 2}}))
        .await
        .is(200);
    assert_eq!(reply.at("/metadata/generation"), 2);
    let reply = on
        .merge(
            &on.budget_path("one"),
            json!({"metadata": {"labels": {"x": "1"}}}),
        )
        .await
        .is(200);
    assert_eq!(reply.at("/metadata/generation"), 2);
}

async fn not_served(on: Subject) {
    // A kind that is not served does not exist: 404, as plain text or as a Status.
    on.get("/apis/nope.example.com/v1/things").await.is(404);
    on.get("/api/v1/things").await.is(404);
}

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

fn reported(on: &Subject) -> Value {
    json!({"apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"generateName": format!("{}-", on.namespace), "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000001Z", "type": "Normal", "reason": "It", "action": "Test", "note": "n",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": "node-0"},
        "reportingController": "example.com/it", "reportingInstance": "it"})
}

async fn an_event_about_a_node(on: Subject) {
    let reply = on.post(EVENTS, reported(&on)).await.is(201);
    let name = reply.at("/metadata/name").as_str().unwrap().to_owned();
    assert!(
        name.starts_with(&format!("{}-", on.namespace)) && name.len() > on.namespace.len() + 1,
        "{name}"
    );
    on.get(&format!("{EVENTS}/{name}")).await.is(200);
}

async fn an_event_that_lacks_something(on: Subject) {
    for field in [
        "eventTime",
        "type",
        "reason",
        "action",
        "reportingController",
        "reportingInstance",
    ] {
        let mut event = reported(&on);
        event.as_object_mut().unwrap().remove(field);
        let reply = on.post(EVENTS, event).await;
        assert_eq!(reply.code, 422, "without {field}: {}", reply.body);
    }
    let mut event = reported(&on);
    event["note"] = json!("n".repeat(1025));
    on.post(EVENTS, event).await.is(422);
    let mut event = reported(&on);
    event["metadata"]["namespace"] = json!(on.namespace);
    let elsewhere = EVENTS.replace("/default/", &format!("/{}/", on.namespace));
    on.post(&elsewhere, event).await.is(422);
}

/// An Event that has happened once, and its path.
async fn new_event(on: &Subject) -> String {
    let reply = on.post(EVENTS, reported(on)).await.is(201);
    format!("{EVENTS}/{}", reply.at("/metadata/name").as_str().unwrap())
}

fn causes(reply: &Reply) -> Value {
    let causes = reply.body["details"]["causes"].as_array().unwrap().iter();
    causes
        .map(|cause| json!([cause["field"], cause["reason"], cause["message"]]))
        .collect()
}

async fn an_event_is_counted_up(on: Subject) {
    let event = new_event(&on).await;
    for (count, minute) in [(2, 1), (5, 9)] {
        let series =
            json!({"count": count, "lastObservedTime": format!("2026-01-01T00:0{minute}:00.000001Z")});
        let reply = on.merge(&event, json!({ "series": series })).await.is(200);
        assert_eq!(reply.at("/series"), series);
        assert_eq!(reply.at("/eventTime"), "2026-01-01T00:00:00.000001Z");
    }
    // It may be a series from the start.
    let mut several = reported(&on);
    several["series"] = json!({"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000001Z"});
    on.post(EVENTS, several).await.is(201);
    for reply in [
        on.merge(&event, json!({"series": {"count": 1, "lastObservedTime": null}}))
            .await,
        on.post(EVENTS, {
            let mut one = reported(&on);
            one["series"] = json!({"count": 1});
            one
        })
        .await,
    ] {
        let reply = reply.is(422);
        assert_eq!(
            causes(&reply),
            json!([
                [
                    "series.count",
                    "FieldValueInvalid",
                    "Invalid value: \"\": should be at least 2"
                ],
                ["series.lastObservedTime", "FieldValueRequired", "Required value"],
            ])
        );
    }
}

async fn a_repeated_event_keeps_its_text(on: Subject) {
    let event = new_event(&on).await;
    for (field, name) in [
        ("note", "message"),
        ("reason", "reason"),
        ("action", "action"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let reply = on.merge(&event, json!({ field: "Other" })).await.is(422);
        let why = "Invalid value: \"Other\": field is immutable";
        assert_eq!(causes(&reply), json!([[name, "FieldValueInvalid", why]]));
    }
    for (patch, name) in [
        (json!({"type": "Warning"}), "type"),
        (json!({"eventTime": "2026-01-01T00:00:01.000001Z"}), "eventTime"),
        (json!({"regarding": {"name": "node-1"}}), "involvedObject"),
    ] {
        let reply = on.merge(&event, patch).await.is(422);
        assert_eq!(causes(&reply)[0][0], name);
    }
}

async fn an_event_that_has_expired(on: Subject) {
    let event = new_event(&on).await;
    on.delete(&event, Value::Null).await.is(200);
    let series = json!({"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000001Z"});
    let reply = on.merge(&event, json!({ "series": series })).await;
    let name = event.rsplit('/').next().unwrap();
    reply.is_refusal(
        404,
        json!("NotFound"),
        &format!("events.events.k8s.io \"{name}\" not found"),
        json!({"name": name, "group": "events.k8s.io", "kind": "events"}),
    );
}
