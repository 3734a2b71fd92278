//! Pods.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as api;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::requests::{Container, Port, Resources, requests};
use super::terms::{keeps_away, node_terms, pod_terms, spread, toleration};
use super::{Meta, Texts, nullable};
use crate::model::{Amounts, HostPort, Newcomer, Resident};
use crate::services::Services;

/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// A Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WirePod {
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
    scheduler_name: String,
    #[serde(deserialize_with = "nullable")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    resources: Resources,
    #[serde(deserialize_with = "nullable")]
    overhead: Texts,
    #[serde(deserialize_with = "nullable")]
    node_selector: Texts,
    #[serde(deserialize_with = "nullable")]
    affinity: api::Affinity,
    #[serde(deserialize_with = "nullable")]
    tolerations: Vec<api::Toleration>,
    #[serde(deserialize_with = "nullable")]
    topology_spread_constraints: Vec<api::TopologySpreadConstraint>,
    #[serde(deserialize_with = "nullable")]
    volumes: Vec<Volume>,
    priority: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "nullable")]
    phase: String,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
    extended_resource_claim_status: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    persistent_volume_claim: Option<Claim>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Claim {
    claim_name: String,
}

/// A pod that may need another node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodToPlace {
    /// Its UID.
    pub uid: String,
    /// Its node.
    pub node: String,
    /// The same pod, as it would come again. The reach of its volumes is not known here.
    pub newcomer: Newcomer,
    /// The claims that it would use again: that of an ephemeral volume is made anew.
    pub claims: Vec<String>,
    /// The scheduler that would place it; `None`: the default one.
    pub other_scheduler: Option<String>,
}

impl WirePod {
    /// Whether it is on a node, and neither has ended nor is terminating.
    pub fn is_there(&self) -> bool {
        let has_ended = matches!(self.status.phase.as_str(), "Succeeded" | "Failed");
        !self.spec.node_name.is_empty() && !has_ended && self.metadata.deletion_timestamp.is_none()
    }

    /// Counts it as an endpoint of these Services, if it is ready.
    pub fn count_in(&self, services: &mut Services) {
        let is_ready = |condition: &Condition| condition.kind == "Ready" && condition.status == "True";
        if self.status.conditions.iter().any(is_ready) {
            services.count(&self.metadata.namespace, &self.metadata.labels);
        }
    }

    /// Its node.
    pub fn node(&self) -> &str {
        &self.spec.node_name
    }

    /// The node, and what others meet there.
    pub fn into_resident(mut self) -> (String, Resident) {
        (std::mem::take(&mut self.spec.node_name), self.resident())
    }

    /// The pod as one that may need another node.
    pub fn into_pod_to_place(mut self) -> PodToPlace {
        let resident = self.resident();
        let Self { metadata, spec, .. } = self;
        let volumes = spec.volumes.into_iter();
        let claims = volumes.filter_map(|volume| volume.persistent_volume_claim);
        let claims = claims.map(|claim| claim.claim_name).collect();
        let node_affinity = spec.affinity.node_affinity.unwrap_or_default();
        let pod_affinity = spec.affinity.pod_affinity.unwrap_or_default();
        let spreads = spec.topology_spread_constraints.into_iter().filter(keeps_away);
        let newcomer = Newcomer {
            node_selector: spec.node_selector,
            node_terms: node_affinity
                .required_during_scheduling_ignored_during_execution
                .map(node_terms),
            tolerations: spec.tolerations.into_iter().map(toleration).collect(),
            affinity: pod_terms(
                pod_affinity.required_during_scheduling_ignored_during_execution,
                &resident.namespace,
            ),
            spread: spreads.map(|one| spread(one, &resident)).collect(),
            volumes: Vec::new(),
            priority: spec.priority.unwrap_or(0),
            resident,
        };
        let is_other = |name: &String| !matches!(name.as_str(), "" | DEFAULT_SCHEDULER);
        PodToPlace {
            uid: metadata.uid,
            node: spec.node_name,
            newcomer,
            claims,
            other_scheduler: Some(spec.scheduler_name).filter(is_other),
        }
    }

    /// Takes out of it what others meet.
    fn resident(&mut self) -> Resident {
        let anti_affinity = self.spec.affinity.pod_anti_affinity.take().unwrap_or_default();
        let namespace = std::mem::take(&mut self.metadata.namespace);
        Resident {
            requests: self.spec.requests(&self.status),
            ports: self.spec.ports(),
            anti_affinity: pod_terms(
                anti_affinity.required_during_scheduling_ignored_during_execution,
                &namespace,
            ),
            labels: std::mem::take(&mut self.metadata.labels),
            namespace,
        }
    }
}

impl Spec {
    /// Without extended resources where devices come by claims: nodes do not count these.
    fn requests(&self, status: &Status) -> Amounts {
        let mut requests = requests(
            &self.init_containers,
            &self.containers,
            &self.resources,
            &self.overhead,
        );
        if status.extended_resource_claim_status.is_some() {
            requests.retain(|name, _| !name.contains('/'));
        }
        requests
    }

    fn ports(&self) -> BTreeSet<HostPort> {
        let sidecars = self.init_containers.iter().filter(|init| init.is_sidecar());
        let together = self.containers.iter().chain(sidecars);
        let ports = together.flat_map(|container| &container.ports);
        ports.filter_map(host_port).collect()
    }
}

fn host_port(port: &Port) -> Option<HostPort> {
    let protocol = match port.protocol.as_str() {
        "" => "TCP",
        other => other,
    };
    Some(HostPort {
        protocol: protocol.to_owned(),
        port: port.host_port.filter(|port| *port > 0)?,
        ip: port.host_ip.clone(),
    })
}
