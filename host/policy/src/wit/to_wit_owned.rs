//! The cluster's objects as owned records: the answers of the host's `cluster` import.

use std::collections::BTreeMap;

use scupper_engine::{Condition, Node, Pod, Time, Uid};

use super::bindings::scupper::drain::types;
use super::to_wit;

/// The node, owned.
pub(crate) fn node(node: Node) -> types::NodeResult {
    types::NodeResult {
        uid: node.uid.as_str().to_owned(),
        name: node.name,
        labels: entries(node.labels),
        annotations: entries(node.annotations),
        unschedulable: node.unschedulable,
        own_cordon: node.checkpoint.is_some_and(|checkpoint| checkpoint.own_cordon),
        conditions: node.conditions.into_iter().map(condition).collect(),
    }
}

/// A pod, owned.
pub(crate) fn pod(pod: Pod, own_pod: Option<&Uid>) -> types::PodResult {
    types::PodResult {
        mirror: pod.is_mirror(),
        driver: own_pod == Some(&pod.id.uid),
        uid: pod.id.uid.as_str().to_owned(),
        namespace: pod.id.namespace,
        name: pod.id.name,
        labels: entries(pod.labels),
        annotations: entries(pod.annotations),
        controller: pod.controller.map(|owner| types::ControllerResult {
            api_version: owner.api_version,
            kind: owner.kind,
            name: owner.name,
            uid: owner.uid.as_str().to_owned(),
        }),
        phase: to_wit::phase(pod.phase),
        ready: pod.ready,
        conditions: pod.conditions.into_iter().map(condition).collect(),
        priority: pod.priority,
        priority_class_name: pod.priority_class,
        termination_grace_period_seconds: pod.grace_seconds,
        creation_timestamp: pod.created.as_millis(),
        deletion_timestamp: pod.deletion.map(|deletion| deletion.at.as_millis()),
        finalizers: pod.finalizers,
        has_empty_dir: pod.empty_dir,
        host_network: pod.host_network,
        hostname: pod.hostname,
    }
}

/// Labels or annotations.
pub(crate) fn entries(map: BTreeMap<String, String>) -> Vec<types::EntryResult> {
    map.into_iter()
        .map(|(key, value)| types::EntryResult { key, value })
        .collect()
}

fn condition(condition: Condition) -> types::ConditionResult {
    types::ConditionResult {
        type_: condition.kind,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        last_transition_time: condition.since.map(Time::as_millis),
    }
}
