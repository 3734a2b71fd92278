//! What scenarios and snapshots say about pods beyond what drains need: requests, devices and volumes, for policies
//! that ask for them.

use std::collections::BTreeMap;

use scupper_cluster::{PodGroups, pod_groups, quantity};
use scupper_engine::{Pod, PodRef, Uid};
use scupper_policy::{ClaimFact, DeviceAttributes, DeviceId, PeerFact, PodClaimFact, PodSpecFact};
use serde::Deserialize;

use super::volume_facts::{VolumeFacts, Volumes};

/// The specs of pods, their ResourceClaims, devices and volumes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodFacts {
    pub(super) specs: BTreeMap<Uid, PodSpecFact>,
    /// By namespace and name.
    pub(super) claims: BTreeMap<(String, String), ClaimFact>,
    pub(super) attributes: DeviceAttributes,
    pub(super) volumes: VolumeFacts,
    /// `spec.schedulingGroup` of the pods that have one.
    pub(super) scheduling_groups: BTreeMap<Uid, String>,
}

/// What a pod requests: a quantity as the API has it, or a number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum AmountForm {
    Number(u64),
    Text(String),
}

/// A device of a ResourceClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct DeviceForm {
    driver: String,
    pool: String,
    name: String,
    admin_access: bool,
    attributes: BTreeMap<String, String>,
}

/// What a pod requests, by resource.
pub(super) type Requests = BTreeMap<String, AmountForm>;

/// Its ResourceClaims by name, with their devices; none: not allocated.
pub(super) type Claims = BTreeMap<String, Vec<DeviceForm>>;

impl PodFacts {
    /// Sets what a pod requests.
    pub(super) fn request(&mut self, pod: &PodRef, requests: &Requests) -> Result<(), String> {
        let amounts = requests.iter().map(|(name, amount)| {
            let text = match amount {
                AmountForm::Number(number) => number.to_string(),
                AmountForm::Text(text) => text.clone(),
            };
            let amount = quantity(name, &text);
            let amount =
                amount.ok_or_else(|| format!("`{text}` is not a quantity of {name}, such as 2 or 500m"))?;
            Ok((name.clone(), amount))
        });
        let amounts = amounts.collect::<Result<_, String>>()?;
        self.specs.entry(pod.uid.clone()).or_default().requests = amounts;
        Ok(())
    }

    /// Sets the ResourceClaims of a pod.
    pub(super) fn claim(&mut self, pod: &PodRef, claims: &Claims) {
        let named = claims.keys().map(|name| PodClaimFact {
            name: name.clone(),
            claim: Some(name.clone()),
        });
        self.specs.entry(pod.uid.clone()).or_default().claims = named.collect();
        for (name, devices) in claims {
            let allocated = devices.iter().map(|device| {
                let id = device.id();
                self.attributes.insert(id.clone(), device.attributes.clone());
                (id, device.admin_access)
            });
            let allocated: Vec<_> = allocated.collect();
            let claim = ClaimFact {
                devices: Some(allocated).filter(|devices| !devices.is_empty()),
            };
            self.claims.insert((pod.namespace.clone(), name.clone()), claim);
        }
    }

    /// Sets the volumes of a pod.
    pub(super) fn set_volumes(&mut self, pod: &PodRef, volumes: &Volumes) {
        let volumes = self.volumes.of_pod(&pod.namespace, volumes);
        self.specs.entry(pod.uid.clone()).or_default().volumes = volumes;
    }

    /// The scheduling groups of a pod.
    pub(super) fn groups(&self, pod: &Pod) -> PodGroups {
        let group = self.scheduling_groups.get(&pod.id.uid).map_or("", String::as_str);
        pod_groups(group, &pod.labels, &pod.annotations)
    }

    /// A pod as a peer of others.
    pub(super) fn peer(&self, pod: &Pod) -> PeerFact {
        PeerFact {
            pod: pod.id.clone(),
            node: pod.node.clone(),
            phase: pod.phase,
            ready: pod.ready,
            deletion: pod.deletion.map(|deletion| deletion.at),
            controller: pod.controller.as_ref().map(|controller| controller.uid.clone()),
            groups: self.groups(pod),
        }
    }
}

impl DeviceForm {
    fn id(&self) -> DeviceId {
        DeviceId {
            driver: self.driver.clone(),
            pool: self.pool.clone(),
            name: self.name.clone(),
        }
    }
}
