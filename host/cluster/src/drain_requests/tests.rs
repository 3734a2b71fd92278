//! Requests of every form, and conditions beside those of others.

use scupper_api::Entity;
use serde_json::{Value, json};

use super::wire::WireRequest;
use super::*;

fn read(spec: &Value) -> DrainRequestObject {
    let object = json!({
        "apiVersion": "nvsentinel.nvidia.com/v1alpha1", "kind": "DrainRequest",
        "metadata": {"namespace": "nvsentinel", "name": "drain-a", "uid": "u",
            "labels": {"nvsentinel.nvidia.com/node-name": "labelled"}},
        "spec": spec,
    });
    serde_json::from_value::<WireRequest>(object)
        .unwrap()
        .into_request()
}

#[test]
fn a_request_is_read_with_unknown_fields_and_others_of_wrong_types() {
    let read = read(&json!({
        "nodeName": "worker-1", "errorCode": 48, "entitiesImpacted": "GPU", "later": {"x": 1},
        "podsToDrain": {"shop": ["cart", "web"], "batch": [], "none": null},
    }));
    assert_eq!((read.node.as_str(), read.problem), ("worker-1", None));
    let pods = read.pods.unwrap();
    assert_eq!(pods["shop"].len(), 2);
    assert!(pods["batch"].is_empty());
}

#[test]
fn fields_are_read_in_any_form_and_odd_ones_are_empty() {
    let spec = json!({"nodeName": "a", "checkName": "GpuXidError", "errorCode": ["48", 79, null],
        "recommendedAction": "COMPONENT_RESET", "healthEventID": "68a1", "reason": "XID 48",
        "entitiesImpacted": [{"type": "GPU_UUID", "value": "GPU-1"}, {"type": "GPU", "value": 0}, {"type": "PCI"}, "x"],
        "metadata": {"rack": "r1", "odd": {}}, "podsToDrain": {"shop": ["cart"]}});
    let fields = read(&spec).fields;
    let entity = |kind: &str, value: &str| Entity {
        kind: kind.to_owned(),
        value: value.to_owned(),
    };
    let expected = DrainRequestFields {
        namespace: "nvsentinel".to_owned(),
        name: "drain-a".to_owned(),
        uid: "u".to_owned(),
        labels: fields.labels.clone(),
        check_name: "GpuXidError".to_owned(),
        error_codes: vec!["48".to_owned(), "79".to_owned()],
        recommended_action: "COMPONENT_RESET".to_owned(),
        health_event_id: "68a1".to_owned(),
        reason: "XID 48".to_owned(),
        entities: [entity("GPU_UUID", "GPU-1"), entity("GPU", "0"), entity("PCI", "")].into(),
        metadata: [("rack".to_owned(), "r1".to_owned())].into(),
        pods_to_drain: [("shop".to_owned(), ["cart".to_owned()].into())].into(),
        ..DrainRequestFields::default()
    };
    assert_eq!(*fields, expected);
    assert_eq!(fields.labels["nvsentinel.nvidia.com/node-name"], "labelled");
    let odd = json!({"nodeName": "a", "checkName": ["x"], "errorCode": 48, "recommendedAction": null, "reason": {},
        "entitiesImpacted": {"GPU": 1}, "metadata": [1], "podsToDrain": "cart"});
    let odd = read(&odd).fields;
    let bare = read(&json!({"nodeName": "a"})).fields;
    assert_eq!(odd, bare);
    assert!(bare.entities.is_empty() && bare.check_name.is_empty());
}

#[test]
fn without_a_node_the_label_says_who_answers() {
    for (spec, problem) in [
        (json!({}), "spec.nodeName is missing"),
        (json!(null), "spec.nodeName is missing"),
        (json!({"nodeName": ""}), "spec.nodeName is missing"),
        (
            json!({"nodeName": 7}),
            "spec.nodeName must be the name of a node, and is a number",
        ),
    ] {
        let read = read(&spec);
        assert_eq!(read.node, "labelled");
        assert_eq!(read.problem.as_deref(), Some(problem));
    }
}

#[test]
fn pods_of_the_wrong_type_are_a_problem_and_ten_thousand_are_none() {
    for wrong in [json!(["cart"]), json!({"shop": "cart"}), json!({"shop": [1]})] {
        let read = read(&json!({"nodeName": "a", "podsToDrain": wrong}));
        assert!(read.pods.unwrap_err().starts_with("spec.podsToDrain must be"));
        assert_eq!(read.problem, None);
    }
    let many: Vec<_> = (0..10_000).map(|number| format!("pod-{number}")).collect();
    let read = read(&json!({"nodeName": "a", "podsToDrain": {"shop": many}}));
    assert_eq!(read.pods.unwrap()["shop"].len(), 10_000);
}

#[test]
fn conditions_with_a_broken_time_are_read_all_the_same() {
    let object = json!({"metadata": {"name": "a"}, "spec": {}, "status": {"conditions": [
        {"type": "DrainComplete", "status": "True", "lastTransitionTime": "yesterday"}, 7, {"type": "x"},
    ]}});
    let read = serde_json::from_value::<WireRequest>(object)
        .unwrap()
        .into_request();
    let [complete] = &read.conditions[..] else {
        panic!("{:?}", read.conditions)
    };
    assert_eq!((complete.kind.as_str(), complete.since), ("DrainComplete", None));
}

/// As a write merges them.
fn merged(object: &Value, wanted: &[RequestCondition], now: Time) -> Option<Vec<Value>> {
    let WithConditions { metadata, status } = serde_json::from_value(object.clone()).unwrap();
    conditions::merged(status.conditions, metadata.generation, wanted, now)
}

fn condition(kind: &str, status: bool, message: &str) -> RequestCondition {
    RequestCondition {
        kind: kind.to_owned(),
        status,
        reason: "Draining".to_owned(),
        message: message.to_owned(),
    }
}

#[test]
fn foreign_conditions_stay_and_a_time_changes_with_its_status_only() {
    let foreign = json!({"type": "Seen", "status": "True", "reason": "X", "message": "", "other": [1]});
    let object = json!({"metadata": {"generation": 3}, "status": {"conditions": [foreign]}});
    let now = Time::from_millis(1_788_256_800_000);
    let wanted = [condition("DrainInProgress", true, "a")];
    let first = merged(&object, &wanted, now).unwrap();
    assert_eq!(first[0], foreign);
    let ours = json!({"type": "DrainInProgress", "status": "True", "reason": "Draining", "message": "a",
        "observedGeneration": 3, "lastTransitionTime": "2026-09-01T10:00:00Z"});
    assert_eq!(first[1], ours);
    let object = json!({"status": {"conditions": first}});
    assert_eq!(merged(&object, &wanted, now), None);
    let later = Time::from_millis(1_788_256_860_000);
    let text = merged(&object, &[condition("DrainInProgress", true, "b")], later).unwrap();
    assert_eq!(text[1]["lastTransitionTime"], ours["lastTransitionTime"]);
    let end = merged(&object, &[condition("DrainInProgress", false, "b")], later).unwrap();
    assert_eq!(end[1]["lastTransitionTime"], "2026-09-01T10:01:00Z");
    assert_eq!(end[0], foreign);
}

#[test]
fn a_status_that_is_no_list_of_conditions_is_replaced() {
    for status in [json!(null), json!({"conditions": {}}), json!({})] {
        let object = json!({"metadata": {}, "status": status});
        let wanted = [condition("DrainFailed", true, "")];
        assert_eq!(merged(&object, &wanted, Time::default()).unwrap().len(), 1);
    }
}

/// A request with this specification, as the API server sends it.
fn sent(uid: usize, spec: &Value) -> WireRequest {
    let object = json!({
        "metadata": {"namespace": "nvsentinel", "name": format!("drain-{uid}"), "uid": format!("u{uid}"),
            "resourceVersion": "7", "creationTimestamp": "2026-09-01T10:00:00Z", "managedFields": [{}],
            "labels": {"nvsentinel.nvidia.com/node-name": "a"}},
        "spec": spec,
    });
    serde_json::from_str(&object.to_string()).unwrap()
}

#[test]
fn a_request_that_is_too_large_is_decoded_up_to_a_bound_and_refused() {
    let many: Vec<_> = (0..480_000).map(|_| "").collect();
    let mut request = sent(1, &json!({"errorCode": many, "nodeName": "a"}));
    assert!(NodeRequests::new("a").keeps(&mut request));
    let read = request.into_request();
    assert_eq!(read.node, "a");
    assert_eq!(read.problem.as_deref(), Some("spec has more than 256 KiB"));
    assert!(read.fields.error_codes.is_empty());
    assert_eq!(read.reference.name, "drain-1");
    let unknown = sent(2, &json!({"nodeName": "a", "later": many}));
    assert_eq!(
        unknown.into_request().problem,
        None,
        "what is not read costs nothing"
    );
}

#[test]
fn of_many_requests_of_a_node_those_that_do_not_fit_are_refused_and_those_of_other_nodes_dropped() {
    let mut kept = NodeRequests::new("a");
    let large = json!({"nodeName": "a", "reason": "x".repeat(200 * 1024)});
    let problems: Vec<_> = (0..50)
        .map(|uid| {
            let mut request = sent(uid, &large);
            assert!(kept.keeps(&mut request));
            request.into_request().problem
        })
        .collect();
    let fit = problems.iter().filter(|problem| problem.is_none()).count();
    assert_eq!(fit, 40);
    let said = problems.last().cloned().flatten().unwrap();
    assert_eq!(
        said,
        "the DrainRequests of this node have more than 8 MiB together"
    );
    // Room is made by one that is gone, and by one that names another node now.
    kept.forget(&sent(0, &large));
    assert!(!kept.keeps(&mut sent(1, &json!({"nodeName": "b"}))));
    let mut again = sent(49, &large);
    assert!(kept.keeps(&mut again));
    assert_eq!(again.into_request().problem, None);
    assert!(!NodeRequests::new("b").keeps(&mut sent(2, &large)));
}

#[test]
fn a_server_that_cannot_select_by_field_selects_by_the_label_of_node_drainer() {
    let selector = NodeRequests::new("worker-1").other_selector();
    assert_eq!(
        selector.as_deref(),
        Some("labelSelector=nvsentinel.nvidia.com%2Fnode-name%3Dworker-1")
    );
    assert_eq!(NodeRequests::new(&"n".repeat(64)).other_selector(), None);
}
