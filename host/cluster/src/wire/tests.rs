//! From the API's objects to the engine's.

use std::time::Duration;

use scupper_api::{ClaimStatus, TransitionNodes};
use scupper_engine::{
    Amount, Budget, BudgetLimit, Controller, Deletion, Operator, PodPhase, PodRef, Requirement, Selector,
    Time, Uid, UnhealthyPods,
};
use serde_json::{Value, json};

use super::super::budget::WireBudget;
use super::super::lifecycle_wire::{WireEvent, WireTransition};
use super::super::node::WireNode;
use super::super::pod::WirePod;
use super::*;

/// 2026-09-01T10:00:00Z
const TEN: u64 = 1_788_256_800_000;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn full_pod() -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": "db-0", "namespace": "prod", "uid": "u-1", "resourceVersion": "7",
            "creationTimestamp": "2026-09-01T10:00:00Z",
            "deletionTimestamp": "2026-09-01T10:00:30Z", "deletionGracePeriodSeconds": 30,
            "labels": {"app": "db"},
            "annotations": {"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{…}"},
            "finalizers": ["example.com/f"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u-8"},
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u-9", "controller": true},
            ],
            "managedFields": [{"manager": "x", "fieldsV1": {"f:metadata": {}}}],
        },
        "spec": {
            "nodeName": "worker-1", "priority": 100, "priorityClassName": "high",
            "terminationGracePeriodSeconds": 60, "hostNetwork": true, "hostname": "db-0",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}},
                {"name": "d", "persistentVolumeClaim": {"claimName": "data-db-0"}}, {"name": "s", "ephemeral": {}},
                {"name": "h", "hostPath": {"path": "/var/lib/db", "type": "DirectoryOrCreate"}},
                {"name": "i", "hostPath": {"path": "/etcetera"}}, {"name": "j", "hostPath": {"path": "/etc/ssl"}},
                {"name": "k", "hostPath": {"path": "/data/sock", "type": "Socket"}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-09-01T10:00:01Z"},
                {"type": "DisruptionTarget", "status": "True", "reason": "R", "message": "M"},
            ],
        },
    })
}

#[test]
fn a_pod_with_everything() {
    let pod = read::<WirePod>(full_pod()).into_engine();
    assert_eq!(
        pod.id,
        PodRef {
            namespace: "prod".into(),
            name: "db-0".into(),
            uid: Uid::new("u-1")
        }
    );
    assert_eq!(
        (pod.node.as_str(), pod.priority, pod.priority_class.as_str()),
        ("worker-1", 100, "high")
    );
    assert_eq!(
        (pod.phase, pod.ready, pod.empty_dir, pod.host_network),
        (PodPhase::Running, true, true, true)
    );
    assert_eq!((pod.grace_seconds, pod.hostname.as_str()), (60, "db-0"));
    assert_eq!(pod.volume_claims, ["data-db-0", "db-0-s"]);
    assert_eq!(pod.host_paths, ["/var/lib/db", "/etcetera"]);
    assert_eq!(pod.created, Time::from_millis(TEN));
    assert_eq!(
        pod.deletion,
        Some(Deletion {
            at: Time::from_millis(TEN + 30_000),
            grace_seconds: 30
        })
    );
    assert_eq!(pod.annotations, [("a".to_owned(), "b".to_owned())].into());
    assert_eq!(pod.finalizers, ["example.com/f"]);
    let controller = Controller {
        api_version: "apps/v1".into(),
        kind: "StatefulSet".into(),
        name: "db".into(),
        uid: Uid::new("u-9"),
        missing: false,
    };
    assert_eq!(pod.controller, Some(controller));
    assert_eq!(pod.conditions[0].since, Some(Time::from_millis(TEN + 1000)));
    assert_eq!(
        (
            pod.conditions[1].reason.as_str(),
            pod.conditions[1].message.as_str()
        ),
        ("R", "M")
    );
}

#[test]
fn the_toleration_that_lets_a_pod_onto_a_cordoned_node_is_named() {
    const TAINT: &str = "node.kubernetes.io/unschedulable";
    for (toleration, named) in [
        (json!({"operator": "Exists"}), Some("every taint")),
        (
            json!({"operator": "Exists", "effect": "NoSchedule"}),
            Some("every taint"),
        ),
        (json!({"operator": "Exists", "effect": "NoExecute"}), None),
        (
            json!({"key": TAINT, "operator": "Exists"}),
            Some("node.kubernetes.io/unschedulable:NoSchedule"),
        ),
        (
            json!({"key": TAINT}),
            Some("node.kubernetes.io/unschedulable:NoSchedule"),
        ),
        (json!({"key": TAINT, "value": "x"}), None),
        (json!({"key": "other", "operator": "Exists"}), None),
        (json!({}), None),
    ] {
        let mut pod = full_pod();
        pod["spec"]["tolerations"] = json!([{"key": "first", "operator": "Exists"}, toleration]);
        let pod = read::<WirePod>(pod).into_engine();
        assert_eq!(pod.cordon_toleration.as_deref(), named, "{toleration}");
    }
}

#[test]
fn a_pod_with_minimal_fields() {
    for spec in [
        json!(null),
        json!({}),
        json!({"containers": null, "volumes": null, "nodeName": null}),
    ] {
        let pod = json!({"metadata": {"name": "p", "uid": "u", "creationTimestamp": null, "labels": null},
                         "spec": spec, "status": {"conditions": null}});
        let pod = read::<WirePod>(pod).into_engine();
        assert_eq!(
            (pod.grace_seconds, pod.phase, pod.ready),
            (30, PodPhase::Unknown, false)
        );
        assert_eq!((pod.deletion, pod.controller, pod.empty_dir), (None, None, false));
    }
}

#[test]
fn every_phase() {
    for (text, phase) in [
        ("Pending", PodPhase::Pending),
        ("Running", PodPhase::Running),
        ("Succeeded", PodPhase::Succeeded),
        ("Failed", PodPhase::Failed),
        ("Unknown", PodPhase::Unknown),
        ("", PodPhase::Unknown),
    ] {
        let mut pod = full_pod();
        pod["status"]["phase"] = json!(text);
        assert_eq!(read::<WirePod>(pod).into_engine().phase, phase);
    }
}

#[test]
fn a_broken_moment_is_refused() {
    let mut pod = full_pod();
    pod["metadata"]["deletionTimestamp"] = json!("yesterday");
    assert!(
        serde_json::from_value::<WirePod>(pod).is_err(),
        "a pod that ends must not look like one that stays"
    );
}

fn budget(spec: Value, status: Value) -> Budget {
    let meta = json!({"name": "b", "namespace": "prod", "generation": 2});
    read::<WireBudget>(json!({"metadata": meta, "spec": spec, "status": status})).into_engine()
}

#[test]
fn budgets() {
    let selector = json!({
        "matchLabels": {"app": "db"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}, {"key": "k", "operator": "Exists"}],
    });
    let status = json!({
        "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3, "observedGeneration": 2,
    });
    let found = budget(
        json!({"selector": selector, "unhealthyPodEvictionPolicy": "AlwaysAllow", "minAvailable": "50%"}),
        status,
    );
    let requirement = |key: &str, operator, values: &[&str]| Requirement {
        key: key.into(),
        operator,
        values: values.iter().map(|&value| value.into()).collect(),
    };
    let selector = Selector {
        labels: [("app".to_owned(), "db".to_owned())].into(),
        expressions: vec![
            requirement("tier", Operator::NotIn, &["x"]),
            requirement("k", Operator::Exists, &[]),
        ],
        nothing: false,
    };
    let wanted = Budget {
        namespace: "prod".into(),
        name: "b".into(),
        selector,
        unhealthy_pods: UnhealthyPods::AlwaysAllow,
        disruptions_allowed: 1,
        current_healthy: 3,
        desired_healthy: 2,
        expected_pods: 3,
        limit: Some(BudgetLimit::MinAvailable(Amount::Percent(50))),
        observed: true,
    };
    assert_eq!(found, wanted);
}

#[test]
fn limits_of_budgets() {
    use BudgetLimit::{MaxUnavailable, MinAvailable};
    for (spec, limit) in [
        (json!({"minAvailable": 2}), Some(MinAvailable(Amount::Pods(2)))),
        (
            json!({"minAvailable": null, "maxUnavailable": 0}),
            Some(MaxUnavailable(Amount::Pods(0))),
        ),
        (
            json!({"maxUnavailable": "30%"}),
            Some(MaxUnavailable(Amount::Percent(30))),
        ),
        (json!({"maxUnavailable": "all"}), None),
        (json!({"minAvailable": -1}), None),
        (json!({}), None),
    ] {
        assert_eq!(budget(spec.clone(), json!({})).limit, limit, "{spec}");
    }
}

#[test]
fn budgets_that_select_all_or_nothing_and_stale_ones() {
    assert_eq!(
        budget(json!({"selector": {}}), json!({})).selector,
        Selector::default()
    );
    assert_eq!(budget(json!({}), json!(null)).selector, Selector::NOTHING);
    let odd = json!({"selector": {"matchExpressions": [{"key": "k", "operator": "Near", "values": ["x"]}]}});
    assert_eq!(budget(odd, json!({})).selector, Selector::NOTHING);
    assert!(!budget(json!({}), json!({"observedGeneration": 1})).observed);
    assert!(!budget(json!({}), json!({})).observed);
    assert_eq!(
        budget(json!({}), json!({})).unhealthy_pods,
        UnhealthyPods::IfHealthyBudget
    );
}

#[test]
fn nodes() {
    let node = |annotations: Value| {
        let meta = json!({"name": "n", "uid": "u", "resourceVersion": "12", "annotations": annotations});
        let status =
            json!({"conditions": [{"type": "Ready", "status": "True"}], "images": [{"names": ["x"]}]});
        read::<WireNode>(json!({"metadata": meta, "spec": {"unschedulable": true}, "status": status}))
            .into_engine()
    };
    let (plain, fault) = node(json!({"a": "b"}));
    assert_eq!(
        (plain.resource_version.as_str(), plain.unschedulable, fault),
        ("12", true, None)
    );
    assert_eq!((plain.checkpoint, plain.conditions.len()), (None, 1));

    let text = "{\"v\":1,\"node\":\"u\",\"id\":\"i\",\"name\":\"n\",\"by\":\"command\",\"intent\":\"drain\",\
                \"phase\":\"evicting\",\"started\":1}";
    let (ours, fault) = node(json!({"scupper.dev/drain": text, "a": "b"}));
    assert_eq!(
        ours.checkpoint.map(|checkpoint| checkpoint.id).as_deref(),
        Some("i")
    );
    assert_eq!(fault, None);
    assert_eq!(
        ours.annotations.keys().collect::<Vec<_>>(),
        ["a"],
        "our own annotation is not shown"
    );

    for (uid, is_read) in [("u", true), ("another", false)] {
        let text = text.replacen("\"node\":\"u\"", &format!("\"node\":\"{uid}\""), 1);
        let (node, fault) = node(json!({"scupper.dev/drain": text}));
        assert_eq!((node.checkpoint.is_some(), fault.is_none()), (is_read, is_read));
    }

    let (cancelled, _) = node(json!({"scupper.dev/cancel": "i"}));
    assert_eq!(cancelled.cancel.as_deref(), Some("i"));
    assert_eq!(node(json!({"a": "b"})).0.cancel, None);

    let (foreign, fault) = node(json!({"scupper.dev/drain": "somebody else's"}));
    assert_eq!(foreign.checkpoint, None);
    assert!(fault.is_some(), "and it is reported");
}

#[test]
fn lifecycle_events() {
    let event = |status: Value| {
        let meta = json!({"name": "e", "uid": "u"});
        let spec = json!({"transitionName": "t", "bindingNode": "n"});
        read::<WireEvent>(json!({"metadata": meta, "spec": spec, "status": status})).into_event()
    };
    let plain = event(json!({"claimStatus": "Claimed", "driver": "d", "sla": "2026-09-01T10:00:00Z"}));
    assert_eq!(
        (plain.driver.as_deref(), plain.sla),
        (Some("d"), Some(Time::from_millis(TEN)))
    );
    let claim = |text: &str| event(json!({ "claimStatus": text })).claim;
    assert_eq!(plain.claim, ClaimStatus::Claimed);
    assert_eq!(claim("claimed"), ClaimStatus::Claimed);
    let named = event(json!({"driver": {"name": "d", "start": "s"}}));
    assert_eq!(named.driver.as_deref(), Some("d"));
    assert_eq!(event(json!({"driver": {"start": "s"}})).driver, None);
    let empty = event(json!(null));
    assert_eq!((empty.claim, empty.driver), (ClaimStatus::Pending, None));
    assert!(empty.sla.is_none() && !empty.deleting);
    assert_eq!(claim("SLAExpired"), ClaimStatus::SlaExpired);
}

#[test]
fn a_lifecycle_event_with_fields_of_wrong_types_is_read_all_the_same() {
    for (driver, name) in [
        (json!(7), "7"),
        (json!(["d"]), r#"["d"]"#),
        (json!({"name": 7}), "7"),
        (json!(null), ""),
    ] {
        let name = Some(name).filter(|name| !name.is_empty());
        let status = json!({"claimStatus": {"x": 1}, "driver": driver, "sla": "tomorrow"});
        let odd = json!({"metadata": {"name": "e"}, "spec": {"transitionName": 1, "bindingNode": ["n"]},
            "status": status});
        let event = read::<WireEvent>(odd).into_event();
        assert_eq!((event.driver.as_deref(), event.sla), (name, None));
        assert_eq!(
            (event.transition.as_str(), event.node.as_str()),
            ("1", r#"["n"]"#)
        );
        assert_eq!(event.claim.as_str(), r#"{"x":1}"#);
    }
}

#[test]
fn lifecycle_transitions() {
    let scope = |nodes: Value| {
        let mut spec = json!({"start": "s", "end": "e", "driver": "d", "sla": "90s"});
        spec.as_object_mut()
            .unwrap()
            .extend(nodes.as_object().unwrap().clone());
        let transition =
            read::<WireTransition>(json!({"metadata": {"name": "t"}, "spec": spec})).into_transition();
        assert_eq!(transition.sla, Some(Duration::from_secs(90)));
        transition.nodes
    };
    assert_eq!(scope(json!({"allNodes": true})), TransitionNodes::AllNodes);
    assert_eq!(scope(json!({"nodeName": "n"})), TransitionNodes::Node("n".into()));
    assert_eq!(
        scope(json!({"nodeSelector": {"nodeSelectorTerms": [{}]}})),
        TransitionNodes::Selector
    );
}

#[test]
fn moments_are_written_as_the_api_wants_them() {
    assert_eq!(seconds(Time::from_millis(TEN + 999)), "2026-09-01T10:00:00Z");
    assert_eq!(micros(Time::from_millis(TEN + 1)), "2026-09-01T10:00:00.001000Z");
    assert_eq!(
        parse_moment("1960-01-01T00:00:00Z").unwrap(),
        Time::from_millis(0)
    );
}
