//! What the specs of a node's pods say beyond what drains need, for policies that ask about it.

use std::collections::BTreeMap;

use scupper_api::facts::{FactKind, FactObject, PodClaim, PodSpec, PodVolume, pod_groups};
use serde::Deserialize;

use super::facts::WireFact;
use super::peers::SchedulingGroup;
use super::wire::{Meta, Texts, nullable};
use scupper_placement::wire::{Container, Resources, requests};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WirePodSpec {
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
    containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    overhead: Texts,
    #[serde(deserialize_with = "nullable")]
    resources: Resources,
    #[serde(deserialize_with = "nullable")]
    resource_claims: Vec<SpecClaim>,
    #[serde(deserialize_with = "nullable")]
    volumes: Vec<SpecVolume>,
    #[serde(deserialize_with = "nullable")]
    scheduling_group: SchedulingGroup,
}

/// One of `spec.volumes`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SpecVolume {
    name: String,
    #[serde(flatten)]
    sources: BTreeMap<String, Option<VolumeSource>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSource {
    claim_name: Option<String>,
}

/// One of `spec.resourceClaims`, or of `status.resourceClaimStatuses`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecClaim {
    name: String,
    resource_claim_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "nullable")]
    resource_claim_statuses: Vec<SpecClaim>,
    extended_resource_claim_status: Option<ExtendedClaim>,
}

/// The claim that stands for extended resources of the containers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExtendedClaim {
    resource_claim_name: String,
}

impl WireFact for WirePodSpec {
    fn into_fact(self, _kind: &FactKind) -> FactObject {
        self.into_spec().into()
    }
}

impl WirePodSpec {
    pub(super) fn into_spec(self) -> PodSpec {
        PodSpec {
            requests: requests(
                &self.spec.init_containers,
                &self.spec.containers,
                &self.spec.resources,
                &self.spec.overhead,
            ),
            claims: claims(self.spec.resource_claims, self.status),
            volumes: volumes(self.spec.volumes, &self.metadata.name),
            groups: pod_groups(
                &self.spec.scheduling_group.pod_group_name,
                &self.metadata.labels,
                &self.metadata.annotations,
            ),
            scheduling_group: self.spec.scheduling_group.pod_group_name,
            uid: self.metadata.uid,
        }
    }
}

fn claims(named: Vec<SpecClaim>, status: Status) -> Vec<PodClaim> {
    let made = status.resource_claim_statuses;
    let claim = |named: SpecClaim| {
        let made = || made.iter().find(|made| made.name == named.name);
        let claim = match (&named.resource_claim_name, made()) {
            (Some(name), _) => Some(name.clone()),
            // The pod needs none after all.
            (None, Some(made)) => Some(made.resource_claim_name.clone()?),
            (None, None) => None,
        };
        Some(PodClaim {
            name: named.name,
            claim,
        })
    };
    let extended = status.extended_resource_claim_status.map(|extended| PodClaim {
        name: String::new(),
        claim: Some(extended.resource_claim_name),
    });
    named.into_iter().filter_map(claim).chain(extended).collect()
}

fn volumes(named: Vec<SpecVolume>, pod: &str) -> Vec<PodVolume> {
    let volume = |volume: SpecVolume| {
        let SpecVolume { name, sources } = volume;
        let mut given = sources.into_iter();
        let (kind, source) = given.find_map(|(kind, source)| Some((kind, source?)))?;
        let claim = match kind.as_str() {
            "persistentVolumeClaim" => source.claim_name,
            // The controller's rule for the claim that it makes from the template.
            "ephemeral" => Some(format!("{pod}-{name}")),
            _ => None,
        };
        Some(PodVolume { name, kind, claim })
    };
    named.into_iter().filter_map(volume).collect()
}

#[cfg(test)]
mod tests {
    use super::super::facts::decoded;
    use super::*;
    use scupper_placement::Amounts;
    use serde_json::{Value, json};

    fn read(value: Value) -> PodSpec {
        decoded(&FactKind::PodSpec { node: String::new() }, value)
    }

    fn container(requests: Value) -> Value {
        json!({"resources": {"requests": requests}})
    }

    fn amounts<const N: usize>(amounts: [(&str, u64); N]) -> Amounts {
        let named = |(name, amount): (&str, u64)| (name.to_owned(), amount);
        amounts.map(named).into()
    }

    #[test]
    fn requests_are_those_that_the_scheduler_counts() {
        let mut sidecar = container(json!({"cpu": "100m"}));
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({
            "initContainers": [container(json!({"memory": "3Gi"})), sidecar,
                container(json!({"cpu": "1", "memory": "1Gi"}))],
            "containers": [container(json!({"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2"})),
                container(json!({"cpu": "0.25", "memory": "512Mi", "ephemeral-storage": "0"})), {}],
            "overhead": {"memory": "1Mi"}});
        let gib = 1 << 30;
        assert_eq!(
            read(json!({"spec": spec})).requests,
            amounts([
                ("cpu", 1100),
                ("memory", 3 * gib + (1 << 20)),
                ("nvidia.com/gpu", 2)
            ])
        );
    }

    #[test]
    fn requests_of_the_pod_itself_stand_for_those_of_its_containers() {
        let spec = json!({"resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "10m"},
            "containers": [container(json!({"cpu": "100m", "memory": "1k"}))]});
        assert_eq!(
            read(json!({"spec": spec})).requests,
            amounts([("cpu", 2010), ("memory", 1000)])
        );
        assert_eq!(read(json!({"spec": null, "status": null})), PodSpec::default());
    }

    #[test]
    fn claims_have_the_name_that_was_made_from_their_template() {
        let pod = json!({"spec": {"resourceClaims": [
                {"name": "shared", "resourceClaimName": "gpus"},
                {"name": "own", "resourceClaimTemplateName": "gpu"},
                {"name": "unneeded", "resourceClaimTemplateName": "gpu"},
                {"name": "late", "resourceClaimTemplateName": "gpu"}]},
            "status": {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "worker-own-x7"},
                    {"name": "unneeded"}],
                "extendedResourceClaimStatus": {"resourceClaimName": "worker-extended-resources-1"}}});
        let claims = read(pod).claims;
        let claims: Vec<_> = claims
            .iter()
            .map(|claim| (claim.name.as_str(), claim.claim.as_deref()))
            .collect();
        assert_eq!(
            claims,
            [
                ("shared", Some("gpus")),
                ("own", Some("worker-own-x7")),
                ("late", None),
                ("", Some("worker-extended-resources-1"))
            ]
        );
    }

    #[test]
    fn volumes_have_the_kind_of_their_source_and_the_name_of_their_claim() {
        let pod = json!({"metadata": {"name": "db-0"}, "spec": {"volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0", "readOnly": false}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "cache", "emptyDir": {}, "nfs": null},
            {"name": "logs", "hostPath": {"path": "/var/log"}},
            {"name": "token", "projected": {"sources": []}},
            {"name": "nothing"}]}});
        let volumes = read(pod).volumes;
        let volumes: Vec<_> = volumes
            .iter()
            .map(|volume| {
                (
                    volume.name.as_str(),
                    volume.kind.as_str(),
                    volume.claim.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            volumes,
            [
                ("data", "persistentVolumeClaim", Some("data-db-0")),
                ("scratch", "ephemeral", Some("db-0-scratch")),
                ("cache", "emptyDir", None),
                ("logs", "hostPath", None),
                ("token", "projected", None)
            ]
        );
    }
}
