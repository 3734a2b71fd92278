//! The pods of a namespace on all nodes, for policies that ask which ones belong together.

use std::collections::BTreeSet;

use futures::Stream;
use scupper_api::Change;
use scupper_engine::{PodPhase, PodRef, Time, Uid};
use serde::Deserialize;

use super::listing::Source;
use super::pod::{controller, phase};
use super::transport::escaped;
use super::watch::watch;
use super::wire::{Condition, Meta, Object, Texts, nullable};
use super::{Cluster, ReadError};

/// `spec.schedulingGroup.podGroupName`, since Kubernetes 1.36.
const SCHEDULING_GROUP: &str = "spec.schedulingGroup";

/// Labels or annotations whose value names the pods that a scheduler or a controller places together: coscheduling,
/// Volcano, Kueue, LeaderWorkerSet, JobSet and KAI.
const GROUP_MARKS: [&str; 6] = [
    "scheduling.x-k8s.io/pod-group",
    "scheduling.k8s.io/group-name",
    "kueue.x-k8s.io/pod-group-name",
    "leaderworkerset.sigs.k8s.io/group-key",
    "jobset.sigs.k8s.io/jobset-name",
    "pod-group-name",
];

/// What marks a pod as part of a group, and the group's name.
pub type PodGroups = Vec<(&'static str, String)>;

/// A pod on any node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "WirePeer")]
pub struct PeerPod {
    /// Namespace, name and UID.
    pub id: PodRef,
    /// `spec.nodeName`; empty: it is not scheduled yet.
    pub node: String,
    /// `status.phase`
    pub phase: PodPhase,
    /// Whether the condition `Ready` is `True`.
    pub ready: bool,
    /// `metadata.deletionTimestamp`
    pub deletion: Option<Time>,
    /// The UID of its controller.
    pub controller: Option<Uid>,
    /// The groups that it is part of.
    pub groups: PodGroups,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WirePeer {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    node_name: String,
    #[serde(deserialize_with = "nullable")]
    scheduling_group: SchedulingGroup,
}

/// `spec.schedulingGroup`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SchedulingGroup {
    #[serde(deserialize_with = "nullable")]
    pub(super) pod_group_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "nullable")]
    phase: String,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
}

/// Pods whose containers have ended are left to the server: a namespace of workflows has tens of thousands.
const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Values that a selector names; of more, the label itself selects, so that the URL stays short.
const MOST_VALUES: usize = 50;

/// Which pods of a namespace to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerSelection {
    /// The namespace.
    pub namespace: String,
    /// Only those whose label has one of these values; `None`: all.
    pub label: Option<(String, BTreeSet<String>)>,
}

impl Cluster {
    /// Reads pods of a namespace that have not ended, on all nodes, and keeps some of them.
    pub async fn peer_pods(
        &self,
        selection: &PeerSelection,
        keeps: impl Fn(&PeerPod) -> bool,
    ) -> Result<Vec<PeerPod>, ReadError> {
        let source = selection.source();
        self.read_list_where(&source, "list pods", keeps).await
    }
}

impl Cluster {
    /// Streams the same pods, first as a list, then each change. Never ends.
    pub fn peer_changes(
        &self,
        selection: &PeerSelection,
    ) -> impl Stream<Item = Change<PeerPod>> + Send + 'static + use<> {
        watch(self, selection.source(), |pod: WirePeer| PeerPod::from(pod))
    }
}

impl Object for WirePeer {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl PeerSelection {
    fn source(&self) -> Source {
        let mut selector = format!("fieldSelector={}", escaped(NOT_ENDED));
        if let Some((key, values)) = &self.label {
            let named: Vec<&str> = values.iter().map(String::as_str).collect();
            let label = match named.len() {
                0..=MOST_VALUES => format!("{key} in ({})", named.join(",")),
                _ => key.clone(),
            };
            selector.push_str(&format!("&labelSelector={}", escaped(&label)));
        }
        Source {
            path: format!("/api/v1/namespaces/{}/pods", escaped(&self.namespace)),
            selector: Some(selector),
            optional: false,
        }
    }
}

/// The groups of a pod. `scheduling_group`: the name in `spec.schedulingGroup`, or empty.
pub fn pod_groups(scheduling_group: &str, labels: &Texts, annotations: &Texts) -> PodGroups {
    let native = (SCHEDULING_GROUP, scheduling_group);
    let marks = GROUP_MARKS.iter().filter_map(|mark| {
        let value = labels.get(*mark).or_else(|| annotations.get(*mark))?;
        Some((*mark, value.as_str()))
    });
    let named = [native].into_iter().chain(marks);
    named
        .filter(|(_, name)| !name.is_empty())
        .map(|(mark, name)| (mark, name.to_owned()))
        .collect()
}

impl From<WirePeer> for PeerPod {
    fn from(wire: WirePeer) -> Self {
        let WirePeer {
            metadata: meta,
            spec,
            status,
        } = wire;
        let mut conditions = status.conditions.iter();
        let group = &spec.scheduling_group.pod_group_name;
        Self {
            groups: pod_groups(group, &meta.labels, &meta.annotations),
            node: spec.node_name,
            phase: phase(&status.phase),
            ready: conditions.any(|condition| condition.kind == "Ready" && condition.status == "True"),
            deletion: meta.deletion_timestamp,
            controller: controller(&meta).map(|controller| controller.uid),
            id: PodRef {
                namespace: meta.namespace,
                name: meta.name,
                uid: Uid(meta.uid),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: Value) -> PeerPod {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_pod_says_where_it_is_how_it_is_and_what_it_belongs_to() {
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "of-train", "controller": true});
        let peer = read(json!({
            "metadata": {"namespace": "train", "name": "worker-1", "uid": "1", "ownerReferences": [owner],
                "deletionTimestamp": "1970-01-01T00:00:05Z"},
            "spec": {"nodeName": "b", "schedulingGroup": {"podGroupName": "workers"}},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}));
        assert_eq!(
            peer,
            PeerPod {
                id: PodRef {
                    namespace: "train".to_owned(),
                    name: "worker-1".to_owned(),
                    uid: Uid("1".to_owned()),
                },
                node: "b".to_owned(),
                phase: PodPhase::Running,
                ready: true,
                deletion: Some(Time::from_millis(5000)),
                controller: Some(Uid("of-train".to_owned())),
                groups: vec![(SCHEDULING_GROUP, "workers".to_owned())],
            }
        );
        let peer = read(json!({"metadata": {"namespace": "a", "name": "b", "uid": "2"},
            "spec": {"schedulingGroup": null}, "status": {"phase": "Pending"}}));
        assert_eq!(
            (peer.node.as_str(), peer.ready, peer.controller),
            ("", false, None)
        );
        assert!(peer.groups.is_empty());
    }

    #[test]
    fn each_mark_makes_a_group_as_label_or_as_annotation() {
        for mark in GROUP_MARKS {
            for place in ["labels", "annotations"] {
                let peer = read(
                    json!({"metadata": {"name": "b", (place): {(mark): "ring", "app": "b"}}, "spec": {}}),
                );
                assert_eq!(peer.groups, [(mark, "ring".to_owned())], "{place}");
                let peer = read(json!({"metadata": {"name": "b", (place): {(mark): ""}}}));
                assert!(peer.groups.is_empty(), "{mark}");
            }
        }
        let (ring, tree) = ("ring".to_owned(), "tree".to_owned());
        let peer = read(json!({"spec": {"schedulingGroup": {"podGroupName": "ring"}},
            "metadata": {"labels": {"kueue.x-k8s.io/pod-group-name": "tree"}}}));
        assert_eq!(
            peer.groups,
            [(SCHEDULING_GROUP, ring), ("kueue.x-k8s.io/pod-group-name", tree)]
        );
    }
}
