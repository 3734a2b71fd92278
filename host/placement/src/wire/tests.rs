//! The fields of objects that are read, and what is left out.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::{Newcomer, Node, Placement, Scene};

fn pod(spec: Value) -> WirePod {
    let mut pod = json!({
        "metadata": {"namespace": "shop", "name": "web-1", "uid": "u", "labels": {"app": "web", "hash": "1"}},
        "spec": {"nodeName": "a"}, "status": {"phase": "Running"}});
    let given = spec.as_object().unwrap().clone();
    pod["spec"].as_object_mut().unwrap().extend(given);
    serde_json::from_value(pod).unwrap()
}

fn newcomer(spec: Value) -> Newcomer {
    pod(spec).into_pod_to_place().newcomer
}

fn node(value: Value) -> Node {
    serde_json::from_value::<WireNode>(value).unwrap().into_node()
}

/// Whether a pod of this spec may run on the node beside these others.
fn fits(on: &Value, others: &[Value], spec: Value) -> bool {
    let mut scene = Scene::new(vec![node(on.clone())]);
    for other in others {
        let (_, resident) = pod(other.clone()).into_resident();
        scene.add("b", resident);
    }
    let placed = scene.trial([], []).place(&[newcomer(spec)]);
    matches!(placed[..], [Placement::Fits { .. }])
}

/// A node of zone x with a taint.
fn tainted() -> Value {
    json!({"metadata": {"name": "b", "labels": {"zone": "x", "cores": "8"}},
        "spec": {"taints": [{"key": "only", "value": "db", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "1900m", "memory": "1Gi", "pods": "3"}}})
}

#[test]
fn every_field_of_a_pod_that_keeps_it_from_a_node_is_read() {
    let taint = json!([{"key": "only", "operator": "Equal", "value": "db"}]);
    let with = |more: Value| {
        let mut spec = json!({"tolerations": taint});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        fits(
            &tainted(),
            &[json!({"nodeName": "b", "containers": [{"ports": [{"hostPort": 80}]}]})],
            spec,
        )
    };
    assert!(!fits(&tainted(), &[], json!({})), "the taint");
    let number = json!([{"key": "only", "operator": "Gt", "value": "1"}]);
    assert!(
        fits(&tainted(), &[], json!({"tolerations": number})),
        "not judged"
    );
    let requests = |cpu: &str| json!([{"resources": {"requests": {"cpu": cpu}}}]);
    let ports = |port: u32, protocol: &str| json!([{"ports": [{"hostPort": port, "protocol": protocol}]}]);
    let terms = |operator: &str, value: &str| {
        let term = json!({"key": "cores", "operator": operator, "values": [value]});
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}})
    };
    let near = |kind: &str, app: &str| {
        let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}});
        json!({kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    };
    let spread = |when: &str, skew: u32| {
        json!([{"topologyKey": "zone", "maxSkew": skew, "whenUnsatisfiable": when, "minDomains": 2,
            "matchLabelKeys": ["hash"], "labelSelector": {"matchLabels": {"app": "web"}}}])
    };
    let cases = [
        (json!({}), true),
        (json!({"containers": requests("1900m")}), true),
        (json!({"containers": requests("2")}), false),
        (json!({"initContainers": requests("2")}), false),
        (json!({"overhead": {"memory": "2Gi"}}), false),
        (json!({"containers": ports(80, "TCP")}), false),
        (json!({"containers": ports(80, "UDP")}), true),
        (json!({"nodeSelector": {"zone": "x"}}), true),
        (json!({"nodeSelector": {"zone": "y"}}), false),
        (json!({"affinity": terms("Gt", "7")}), true),
        (json!({"affinity": terms("Lt", "8")}), false),
        (json!({"affinity": terms("NotIn", "8")}), false),
        (json!({"affinity": near("podAffinity", "web")}), true),
        (json!({"affinity": near("podAffinity", "db")}), false),
        (json!({"affinity": near("podAntiAffinity", "web")}), false),
        (json!({"affinity": near("podAntiAffinity", "db")}), true),
        (
            json!({"topologySpreadConstraints": spread("DoNotSchedule", 2)}),
            true,
        ),
        (
            json!({"topologySpreadConstraints": spread("DoNotSchedule", 1)}),
            false,
        ),
        (
            json!({"topologySpreadConstraints": spread("ScheduleAnyway", 1)}),
            true,
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(with(spec.clone()), expected, "{spec}");
    }
}

#[test]
fn fields_of_a_node_are_read_and_may_be_missing() {
    let bare = node(json!({"metadata": {"name": "b", "labels": null}, "spec": null, "status": null}));
    assert_eq!(
        bare,
        Node {
            name: "b".to_owned(),
            ..Node::default()
        }
    );
    let read = node(tainted());
    let allocatable = read.allocatable.unwrap();
    assert_eq!(
        (allocatable["cpu"], allocatable["memory"], allocatable["pods"]),
        (1900, 1 << 30, 3)
    );
    assert!(node(json!({"metadata": {"name": "b"}, "spec": {"unschedulable": true}})).unschedulable);
}

#[test]
fn pods_that_ended_or_terminate_or_have_no_node_are_not_there() {
    let there = |change: fn(&mut Value)| {
        let mut pod =
            json!({"metadata": {"name": "web"}, "spec": {"nodeName": "a"}, "status": {"phase": "Running"}});
        change(&mut pod);
        serde_json::from_value::<WirePod>(pod).unwrap().is_there()
    };
    assert!(there(|_| {}));
    assert!(there(|pod| pod["status"]["phase"] = json!("Pending")));
    assert!(!there(|pod| pod["status"]["phase"] = json!("Succeeded")));
    assert!(!there(|pod| pod["status"]["phase"] = json!("Failed")));
    assert!(!there(|pod| pod["spec"] = json!({})));
    assert!(!there(
        |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")
    ));
}

#[test]
fn terms_that_select_namespaces_by_other_labels_than_their_name_are_left_out() {
    let terms = |selector: Value| {
        let term = json!({"topologyKey": "zone", "namespaceSelector": selector,
            "labelSelector": {"matchLabels": {"app": "web"}}});
        let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        newcomer(json!({"affinity": affinity})).resident.anti_affinity
    };
    let own = terms(Value::Null);
    assert_eq!(own[0].namespaces, BTreeSet::from(["shop".to_owned()]));
    let all = terms(json!({}));
    assert!(all[0].namespaces.is_empty() && all[0].namespace_selector.is_some());
    assert_eq!(
        terms(json!({"matchLabels": {"kubernetes.io/metadata.name": "x"}})).len(),
        1
    );
    assert_eq!(terms(json!({"matchLabels": {"team": "x"}})).len(), 0);
}

#[test]
fn devices_that_come_by_claims_are_not_counted_on_nodes() {
    let containers = json!([{"resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}}]);
    let read = |status: Value| {
        let pod = json!({"metadata": {"name": "x"}, "spec": {"containers": containers}, "status": status});
        let pod: WirePod = serde_json::from_value(pod).unwrap();
        pod.into_resident().1.requests.len()
    };
    assert_eq!(read(json!({})), 2);
    assert_eq!(
        read(json!({"extendedResourceClaimStatus": {"resourceClaimName": "x"}})),
        1
    );
}

#[test]
fn the_scheduler_and_claims_of_a_pod_are_read() {
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web"}},
        {"name": "scratch", "ephemeral": {}}, {"name": "tmp", "emptyDir": {}}]);
    let read = pod(json!({"volumes": volumes, "schedulerName": "batch"})).into_pod_to_place();
    assert_eq!(read.claims, ["data-web"]);
    assert_eq!(read.other_scheduler.as_deref(), Some("batch"));
    let read = pod(json!({"schedulerName": "default-scheduler"})).into_pod_to_place();
    assert_eq!(read.other_scheduler, None);
}

#[test]
fn only_volumes_that_are_asked_for_and_not_everywhere_have_a_reach() {
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]});
    let affinity = json!({"required": {"nodeSelectorTerms": [term]}});
    let reach = |name: &str, affinity: &Value| {
        let volume = json!({"metadata": {"name": name}, "spec": {"nodeAffinity": affinity}});
        let volume: WireVolume = serde_json::from_value(volume).unwrap();
        volume
            .reach(&BTreeSet::from(["pv".to_owned()]))
            .map(|(_, terms)| terms.len())
    };
    assert_eq!(reach("pv", &affinity), Some(1));
    assert_eq!(reach("other", &affinity), None);
    assert_eq!(reach("pv", &Value::Null), None);
}
