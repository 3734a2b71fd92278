//! LifecycleTransition and LifecycleEvent: the common behaviour of the native kinds and the CRDs, and the native
//! messages.

use serde_json::{Value, json};

use super::Case;
use super::subject::Subject;
use crate::cases;

pub(crate) fn cases() -> Vec<Case> {
    use super::lifecycle;
    cases! {
        Lifecycle: lifecycle::an_event_begins_pending;
        Lifecycle: lifecycle::a_main_update_keeps_the_status;
        Lifecycle: lifecycle::a_status_update_keeps_the_rest;
        Lifecycle: lifecycle::what_an_event_names_stays;
        Lifecycle: lifecycle::an_event_must_name_a_node;
        Lifecycle: lifecycle::events_are_selected_by_node;
        Lifecycle: lifecycle::transitions_are_selected_by_node_and_driver;
        Lifecycle: lifecycle::a_transition_is_for_one_choice_of_nodes;
        Lifecycle: lifecycle::the_choice_of_nodes_stays;
        Lifecycle: lifecycle::a_finalizer_holds_an_event;
        Lifecycle: lifecycle::claiming_takes_a_version;
        NativeLifecycle: lifecycle::words_of_an_invalid_transition;
        NativeLifecycle: lifecycle::words_of_an_invalid_event;
        NativeLifecycle: lifecycle::a_deleted_event_is_returned;
        NativeLifecycle: lifecycle::unknown_field;
    }
}

const EVENTS: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents";
const TRANSITIONS: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions";

fn event(on: &Subject) -> Value {
    json!({"apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent", "metadata": {"name": on.namespace},
        "spec": {"transitionName": "drain", "bindingNode": format!("n.{}", on.namespace)}})
}

fn transition(on: &Subject, spec: Value) -> Value {
    let mut whole = json!({"start": "A", "end": "B", "driver": format!("d.{}", on.namespace)});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleTransition",
        "metadata": {"name": on.namespace}, "spec": whole})
}

fn own(on: &Subject, collection: &str) -> String {
    format!("{collection}/{}", on.namespace)
}

async fn an_event_begins_pending(on: Subject) {
    let mut object = event(&on);
    object["status"] = json!({"claimStatus": "Succeeded", "driver": "x"});
    on.post(EVENTS, object).await.is(201);
    let stored = on.get(&own(&on, EVENTS)).await.is(200);
    assert_eq!(stored.at("/status"), json!({"claimStatus": "Pending"}));
    on.delete(&own(&on, EVENTS), Value::Null).await.is(200);
    on.get(&own(&on, EVENTS)).await.is(404);
}

async fn a_main_update_keeps_the_status(on: Subject) {
    let mut object = on.post(EVENTS, event(&on)).await.is(201).body;
    object["status"] = json!({"claimStatus": "Claimed"});
    object["metadata"]["labels"] = json!({"x": "1"});
    let reply = on.put(&own(&on, EVENTS), object).await.is(200);
    assert_eq!(reply.at("/metadata/labels/x"), "1");
    assert_eq!(
        on.get(&own(&on, EVENTS)).await.at("/status/claimStatus"),
        "Pending"
    );
}

async fn a_status_update_keeps_the_rest(on: Subject) {
    let mut object = on.post(EVENTS, event(&on)).await.is(201).body;
    object["status"] = json!({"claimStatus": "Claimed", "driver": "x", "sla": "2030-01-01T00:00:00Z"});
    object["spec"]["transitionName"] = json!("other");
    object["metadata"]["labels"] = json!({"x": "1"});
    object["metadata"]["finalizers"] = json!(["example.com/x"]);
    on.put(&format!("{}/status", own(&on, EVENTS)), object)
        .await
        .is(200);
    let stored = on.get(&own(&on, EVENTS)).await;
    let status = json!({"claimStatus": "Claimed", "driver": "x", "sla": "2030-01-01T00:00:00Z"});
    assert_eq!(stored.at("/status"), status);
    assert_eq!(stored.at("/spec/transitionName"), "drain");
    assert_eq!(
        (stored.at("/metadata/labels"), stored.at("/metadata/finalizers")),
        (Value::Null, Value::Null)
    );
}

async fn what_an_event_names_stays(on: Subject) {
    on.post(EVENTS, event(&on)).await.is(201);
    for field in ["transitionName", "bindingNode"] {
        let reply = on
            .merge(&own(&on, EVENTS), json!({"spec": {field: "other"}}))
            .await
            .is(422);
        assert_eq!(reply.at("/reason"), "Invalid");
        let message = reply.at("/message").as_str().unwrap().to_owned();
        assert!(
            message.contains(&format!("spec.{field}")) && message.contains("field is immutable"),
            "{message}"
        );
    }
}

async fn an_event_must_name_a_node(on: Subject) {
    let long = "n".repeat(254);
    for node in [
        json!(null),
        json!(""),
        json!(7),
        json!(["n"]),
        json!("Node"),
        json!(long),
    ] {
        let mut object = event(&on);
        object["spec"]["bindingNode"] = node.clone();
        let reply = on.post(EVENTS, object).await;
        assert!([400, 422].contains(&reply.code), "{node}: {}", reply.body);
    }
    let mut object = event(&on);
    object["metadata"]["name"] = json!(long);
    on.post(EVENTS, object).await.is(422);
    on.get(&own(&on, EVENTS)).await.is(404);
}

async fn events_are_selected_by_node(on: Subject) {
    on.post(EVENTS, event(&on)).await.is(201);
    let list = on
        .get(&format!(
            "{EVENTS}?fieldSelector=spec.bindingNode%3Dn.{}",
            on.namespace
        ))
        .await
        .is(200);
    assert_eq!(list.at("/items").as_array().unwrap().len(), 1);
    let kind = if on.crds {
        json!("LifecycleEvent")
    } else {
        Value::Null
    };
    assert_eq!(list.at("/items/0/kind"), kind);
    let list = on
        .get(&format!("{EVENTS}?fieldSelector=spec.bindingNode%3Dnope"))
        .await
        .is(200);
    assert_eq!(list.at("/items"), json!([]));
    on.get(&format!("{EVENTS}?fieldSelector=status.claimStatus%3DPending"))
        .await
        .is(400);
}

async fn transitions_are_selected_by_node_and_driver(on: Subject) {
    let node = format!("n.{}", on.namespace);
    on.post(TRANSITIONS, transition(&on, json!({"nodeName": node})))
        .await
        .is(201);
    for selector in [
        format!("spec.nodeName%3D{node}"),
        format!("spec.driver%3Dd.{}", on.namespace),
    ] {
        let list = on
            .get(&format!("{TRANSITIONS}?fieldSelector={selector}"))
            .await
            .is(200);
        assert_eq!(list.at("/items").as_array().unwrap().len(), 1, "{selector}");
    }
}

async fn a_transition_is_for_one_choice_of_nodes(on: Subject) {
    for spec in [
        json!({}),
        json!({"nodeName": "a", "allNodes": true}),
        json!({"allNodes": false}),
        json!({"nodeName": ""}),
        json!({"nodeSelector": {"nodeSelectorTerms": []}}),
        json!({"allNodes": true, "driver": ""}),
    ] {
        let reply = on.post(TRANSITIONS, transition(&on, spec.clone())).await;
        assert_eq!(reply.code, 422, "{spec}: {}", reply.body);
    }
    on.post(
        TRANSITIONS,
        transition(&on, json!({"nodeSelector": {"nodeSelectorTerms": [{}]}})),
    )
    .await
    .is(201);
}

async fn the_choice_of_nodes_stays(on: Subject) {
    on.post(
        TRANSITIONS,
        transition(&on, json!({"nodeName": "a", "sla": "90s"})),
    )
    .await
    .is(201);
    on.merge(&own(&on, TRANSITIONS), json!({"spec": {"nodeName": "b"}}))
        .await
        .is(422);
    on.merge(
        &own(&on, TRANSITIONS),
        json!({"spec": {"nodeName": null, "allNodes": true}}),
    )
    .await
    .is(422);
    on.merge(
        &own(&on, TRANSITIONS),
        json!({"spec": {"start": "C", "sla": "0s"}}),
    )
    .await
    .is(200);
}

async fn a_finalizer_holds_an_event(on: Subject) {
    let mut object = event(&on);
    object["metadata"]["finalizers"] = json!(["lifecycle.k8s.io/claim-protection"]);
    on.post(EVENTS, object).await.is(201);
    let reply = on.delete(&own(&on, EVENTS), Value::Null).await.is(200);
    assert_eq!(reply.at("/kind"), "LifecycleEvent");
    assert!(
        on.get(&own(&on, EVENTS))
            .await
            .at("/metadata/deletionTimestamp")
            .is_string()
    );
    let late = json!({"metadata": {"finalizers": ["lifecycle.k8s.io/claim-protection", "example.com/late"]}});
    on.merge(&own(&on, EVENTS), late).await.is(422);
    on.merge(&own(&on, EVENTS), json!({"metadata": {"finalizers": null}}))
        .await
        .is(200);
    on.get(&own(&on, EVENTS)).await.is(404);
}

async fn claiming_takes_a_version(on: Subject) {
    let mut first = on.post(EVENTS, event(&on)).await.is(201).body;
    let mut second = first.clone();
    first["status"] = json!({"claimStatus": "Claimed", "driver": "first"});
    second["status"] = json!({"claimStatus": "Claimed", "driver": "second"});
    let path = format!("{}/status", own(&on, EVENTS));
    on.put(&path, first).await.is(200);
    let reply = on.put(&path, second.clone()).await.is(409);
    assert_eq!(reply.at("/details/kind"), "lifecycleevents");
    assert_eq!(reply.at("/details/group"), "lifecycle.k8s.io");
    second["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    let reply = on.put(&path, second).await;
    // A CRD requires a version; the native kind does not.
    assert_eq!(reply.code, if on.crds { 422 } else { 200 }, "{}", reply.body);
}

async fn words_of_an_invalid_transition(on: Subject) {
    let name = on.namespace.clone();
    for (spec, words) in [
        (json!({"allNodes": true, "start": ""}), "spec.start: Required value".to_owned()),
        (
            json!({"allNodes": true, "start": "", "driver": ""}),
            "[spec.start: Required value, spec.driver: Required value]".to_owned(),
        ),
        (json!({}), "spec: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required".to_owned()),
        (
            json!({"nodeSelector": {"nodeSelectorTerms": []}}),
            "spec.nodeSelector.nodeSelectorTerms: Invalid value: []: must have exactly one node selector term".to_owned(),
        ),
        (
            json!({"allNodes": false}),
            "[spec.allNodes: Invalid value: false: must be either unset or set to true, spec: Required value: exactly one \
             of `nodeName`, `nodeSelector`, or `allNodes` is required]"
                .to_owned(),
        ),
        (
            json!({"nodeName": ""}),
            "[spec.nodeName: Invalid value: \"\": must be either unset or set to a non-empty string, spec: Required value: \
             exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required]"
                .to_owned(),
        ),
    ] {
        let reply = on.post(TRANSITIONS, transition(&on, spec)).await.is(422);
        let message = format!("LifecycleTransition.lifecycle.k8s.io \"{name}\" is invalid: {words}");
        assert_eq!(reply.at("/message"), message.as_str());
    }
}

async fn words_of_an_invalid_event(on: Subject) {
    let mut object = event(&on);
    object["spec"] = json!({"transitionName": "", "bindingNode": ""});
    let reply = on.post(EVENTS, object).await.is(422);
    let message = format!(
        "LifecycleEvent.lifecycle.k8s.io \"{}\" is invalid: [spec.transitionName: Required value, spec.bindingNode: \
         Required value]",
        on.namespace
    );
    assert_eq!(reply.at("/message"), message.as_str());
    let mut object = event(&on);
    object["metadata"]["name"] = json!("Upper");
    let reply = on.post(EVENTS, object).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "metadata.name");
}

async fn a_deleted_event_is_returned(on: Subject) {
    on.post(EVENTS, event(&on)).await.is(201);
    let reply = on.delete(&own(&on, EVENTS), Value::Null).await.is(200);
    assert_eq!(reply.at("/kind"), "LifecycleEvent");
}

async fn unknown_field(on: Subject) {
    let reply = on
        .get(&format!("{EVENTS}?fieldSelector=status.claimStatus%3DPending"))
        .await
        .is(400);
    assert_eq!(
        reply.at("/message"),
        "field label not supported for LifecycleEvent: status.claimStatus"
    );
}
