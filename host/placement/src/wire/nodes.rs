//! Nodes, and the nodes that reach a volume.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as api;
use serde::Deserialize;

use super::requests::amounts;
use super::terms::node_terms;
use super::{Meta, Texts, nullable};
use crate::model::{Node, NodeTerm, Taint};

/// A Node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WireNode {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    unschedulable: bool,
    #[serde(deserialize_with = "nullable")]
    taints: Vec<api::Taint>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    allocatable: Option<Texts>,
}

impl WireNode {
    /// What filters look at.
    pub fn into_node(self) -> Node {
        let taints = self.spec.taints.into_iter().map(|taint| Taint {
            key: taint.key,
            value: taint.value.unwrap_or_default(),
            effect: taint.effect,
        });
        Node {
            name: self.metadata.name,
            labels: self.metadata.labels,
            taints: taints.collect(),
            unschedulable: self.spec.unschedulable,
            allocatable: self.status.allocatable.map(|quantities| amounts(&quantities)),
        }
    }
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WireVolume {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: VolumeSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    #[serde(deserialize_with = "nullable")]
    node_affinity: VolumeAffinity,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct VolumeAffinity {
    required: Option<api::NodeSelector>,
}

impl WireVolume {
    /// Its name and the nodes that reach it, if it is one of these volumes and not all nodes do.
    pub fn reach(self, names: &BTreeSet<String>) -> Option<(String, Vec<NodeTerm>)> {
        let terms = node_terms(self.spec.node_affinity.required?);
        names
            .contains(&self.metadata.name)
            .then_some((self.metadata.name, terms))
    }
}
