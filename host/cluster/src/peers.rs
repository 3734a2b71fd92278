//! The pods of a namespace on all nodes, for policies that ask which ones belong together.

use futures::Stream;
use scupper_api::Change;
use scupper_api::facts::{FactKind, FactObject, Peer, PeerSelection, pod_groups};
use scupper_engine::{PodRef, Uid};
use serde::Deserialize;

use super::Cluster;
use super::facts::WireFact;
use super::listing::Source;
use super::pod::{controller, phase};
use super::transport::escaped;
use super::watch::watch;
use super::wire::{Condition, Meta, Object, nullable};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WirePeer {
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

impl Cluster {
    /// Streams the pods of a selection and others of its namespace, first as a list, then each change. Never ends.
    pub fn peer_changes(
        &self,
        selection: &PeerSelection,
    ) -> impl Stream<Item = Change<Peer>> + Send + 'static + use<> {
        watch(self, source(selection), |pod: WirePeer| pod.into_peer())
    }
}

impl Object for WirePeer {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The pods of a selection, as far as the server can select them.
pub(super) fn source(selection: &PeerSelection) -> Source {
    let mut selector = format!("fieldSelector={}", escaped(NOT_ENDED));
    if let Some((key, values)) = &selection.label {
        let named: Vec<&str> = values.iter().map(String::as_str).collect();
        let label = match named.len() {
            0..=MOST_VALUES => format!("{key} in ({})", named.join(",")),
            _ => key.clone(),
        };
        selector.push_str(&format!("&labelSelector={}", escaped(&label)));
    }
    Source {
        path: format!("/api/v1/namespaces/{}/pods", escaped(&selection.namespace)),
        selector: Some(selector),
        optional: false,
    }
}

impl WireFact for WirePeer {
    fn into_fact(self, _kind: &FactKind) -> FactObject {
        self.into_peer().into()
    }
}

impl WirePeer {
    fn into_peer(self) -> Peer {
        let Self {
            metadata: meta,
            spec,
            status,
        } = self;
        let mut conditions = status.conditions.iter();
        let group = &spec.scheduling_group.pod_group_name;
        Peer {
            groups: pod_groups(group, &meta.labels, &meta.annotations),
            node: spec.node_name,
            phase: phase(&status.phase),
            ready: conditions.any(|condition| condition.kind == "Ready" && condition.status == "True"),
            deletion: meta.deletion_timestamp,
            controller: controller(&meta).map(|controller| controller.uid),
            id: PodRef {
                namespace: meta.namespace,
                name: meta.name,
                uid: Uid::new(meta.uid),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use scupper_engine::{PodPhase, Time};

    use super::super::facts::decoded;
    use super::*;
    use serde_json::{Value, json};

    fn read(value: Value) -> Peer {
        decoded(&FactKind::Peer, value)
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
            Peer {
                id: PodRef {
                    namespace: "train".to_owned(),
                    name: "worker-1".to_owned(),
                    uid: Uid::new("1"),
                },
                node: "b".to_owned(),
                phase: PodPhase::Running,
                ready: true,
                deletion: Some(Time::from_millis(5000)),
                controller: Some(Uid::new("of-train")),
                groups: vec![("spec.schedulingGroup", "workers".to_owned())],
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
        for mark in [
            "scheduling.x-k8s.io/pod-group",
            "scheduling.k8s.io/group-name",
            "kueue.x-k8s.io/pod-group-name",
            "leaderworkerset.sigs.k8s.io/group-key",
            "jobset.sigs.k8s.io/jobset-name",
            "pod-group-name",
        ] {
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
            [
                ("spec.schedulingGroup", ring),
                ("kueue.x-k8s.io/pod-group-name", tree)
            ]
        );
    }
}
