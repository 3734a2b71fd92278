//! What scenarios and snapshots have for policies that ask about the cluster: its objects, and the short forms of those that
//! belong to pods.

use std::collections::BTreeMap;
use std::mem::discriminant;

use scupper_api::facts::{
    ClaimedDevice, DeviceId, DeviceSlice, FactObject, FactQuery, FactType as _, HOSTNAME, Peer,
    PersistentVolume, PersistentVolumeClaim, PodClaim, PodSpec, PodVolume, ResourceClaim, VolumeAttachment,
    pod_groups,
};
use scupper_common::quantity::quantity;
use scupper_engine::{Pod, PodRef, Uid};
use serde::Deserialize;

use super::values::text_or;

/// The kind of a volume that has a claim.
const CLAIM: &str = "persistentVolumeClaim";

/// The objects that policies may ask about, but for those that change with the drain.
#[derive(Clone, Debug, Default)]
pub(crate) struct FactObjects {
    objects: Vec<FactObject>,
    /// The specs of pods, also of those that are gone.
    specs: BTreeMap<Uid, PodSpec>,
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

/// A volume of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct VolumeFields {
    /// The kind of its source; default: `persistentVolumeClaim`.
    kind: String,
    /// The name of its claim; default: the volume's.
    claim: Option<String>,
    /// The PersistentVolume; default: `pv-of-CLAIM`; empty: not bound.
    volume: Option<String>,
    /// The kind of the PersistentVolume; default: `csi`.
    volume_kind: Option<String>,
    /// Only this node can use the PersistentVolume.
    node_local: bool,
    storage_class: String,
    access_modes: Vec<String>,
    attached_to: Vec<String>,
}

text_or! {
    /// A volume: only the kind of its source, or all its fields.
    #[derive(Clone)]
    VolumeForm, VolumeFields, |kind| VolumeFields { kind, ..VolumeFields::default() }
}

/// What a pod requests, by resource.
pub(super) type Requests = BTreeMap<String, AmountForm>;

/// Its ResourceClaims by name, with their devices; none: not allocated.
pub(super) type Claims = BTreeMap<String, Vec<DeviceForm>>;

/// The volumes of a pod, by name.
pub(super) type Volumes = BTreeMap<String, VolumeForm>;

impl FactObjects {
    /// Adds an object.
    pub(super) fn add(&mut self, object: FactObject) {
        self.objects.push(object);
    }

    /// Adds an object in place of another one of its kind and name.
    pub(super) fn set(&mut self, object: impl Into<FactObject>) {
        let object = object.into();
        self.objects.retain(|known| !is_replaced(known, &object));
        self.add(object);
    }

    /// Adds the spec of a pod.
    pub(super) fn add_spec(&mut self, spec: PodSpec) {
        self.specs.insert(Uid::new(spec.uid.clone()), spec);
    }

    /// An object of the same kind and name is there.
    pub(super) fn has(&self, object: &FactObject) -> bool {
        self.objects.iter().any(|known| is_replaced(known, object))
    }

    /// The spec of the same pod is there.
    pub(super) fn has_spec(&self, spec: &PodSpec) -> bool {
        self.specs.contains_key(&Uid::new(spec.uid.clone()))
    }

    /// The specs of some pods are there.
    pub(super) fn has_specs(&self) -> bool {
        !self.specs.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &FactObject> {
        self.objects.iter()
    }

    pub(super) fn retain(&mut self, keeps: impl Fn(&FactObject) -> bool) {
        self.objects.retain(keeps);
    }

    /// Those that a query wants.
    pub(super) fn answer(&self, query: &FactQuery) -> Vec<FactObject> {
        self.objects
            .iter()
            .filter(|object| query.wants(object))
            .cloned()
            .collect()
    }

    /// What the spec of a pod says.
    pub(super) fn spec(&self, pod: &Pod) -> PodSpec {
        let spec = self.specs.get(&pod.id.uid).cloned().unwrap_or_default();
        PodSpec {
            uid: pod.id.uid.as_str().to_owned(),
            groups: pod_groups(&spec.scheduling_group, &pod.labels, &pod.annotations),
            ..spec
        }
    }

    /// A pod as a peer of others.
    pub(super) fn peer(&self, pod: &Pod) -> Peer {
        let spec = self.specs.get(&pod.id.uid);
        Peer::of_pod(pod, spec.map_or("", |spec| &spec.scheduling_group))
    }

    fn spec_of(&mut self, pod: &PodRef) -> &mut PodSpec {
        self.specs.entry(pod.uid.clone()).or_default()
    }

    /// Sets the scheduling group of a pod.
    pub(super) fn set_scheduling_group(&mut self, pod: &PodRef, group: &str) {
        group.clone_into(&mut self.spec_of(pod).scheduling_group);
    }

    /// Sets what a pod requests.
    pub(super) fn set_requests(&mut self, pod: &PodRef, requests: &Requests) -> Result<(), String> {
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
        self.spec_of(pod).requests = amounts.collect::<Result<_, String>>()?;
        Ok(())
    }

    /// Sets the ResourceClaims of a pod of the node.
    pub(super) fn set_claims(&mut self, pod: &PodRef, node: &str, claims: &Claims) {
        let named = claims.keys().map(|name| PodClaim {
            name: name.clone(),
            claim: Some(name.clone()),
        });
        self.spec_of(pod).claims = named.collect();
        for (name, devices) in claims {
            let allocated = devices.iter().map(|device| {
                self.publish(node, device);
                ClaimedDevice {
                    id: device.id(),
                    admin_access: device.admin_access,
                }
            });
            let allocated: Vec<_> = allocated.collect();
            self.set(ResourceClaim {
                namespace: pod.namespace.clone(),
                name: name.clone(),
                devices: Some(allocated).filter(|devices| !devices.is_empty()),
            });
        }
    }

    /// Publishes a device beside those of its pool.
    fn publish(&mut self, node: &str, device: &DeviceForm) {
        let id = device.id();
        let is_beside = |other: &DeviceId| (&other.driver, &other.pool) == (&id.driver, &id.pool);
        let slices = self.objects.iter().filter_map(DeviceSlice::of);
        let of_pool = slices.filter(|slice| slice.devices.keys().any(is_beside));
        let generation = of_pool.map(|slice| slice.generation).max().unwrap_or(0);
        let slice = DeviceSlice {
            node: node.to_owned(),
            generation,
            devices: BTreeMap::from([(id, device.attributes.clone())]),
        };
        self.add(slice.into());
    }

    /// Sets the volumes of a pod of the node, and their claims.
    pub(super) fn set_volumes(&mut self, pod: &PodRef, node: &str, volumes: &Volumes) {
        let volume = |(name, VolumeForm(fields)): (&String, &VolumeForm)| {
            let kind = Some(&fields.kind).filter(|kind| !kind.is_empty());
            let kind = kind.cloned().unwrap_or_else(|| CLAIM.to_owned());
            let claim = matches!(kind.as_str(), CLAIM | "ephemeral").then(|| {
                let claim = fields.claim.as_ref().unwrap_or(name).clone();
                self.set_volume_claim(&pod.namespace, &claim, node, fields);
                claim
            });
            PodVolume {
                name: name.clone(),
                kind,
                claim,
            }
        };
        let volumes = volumes.iter().map(volume).collect();
        self.spec_of(pod).volumes = volumes;
    }

    fn set_volume_claim(&mut self, namespace: &str, name: &str, node: &str, fields: &VolumeFields) {
        let volume = fields.volume.clone();
        let volume = volume.unwrap_or_else(|| format!("pv-of-{name}"));
        if !volume.is_empty() {
            let kind = fields.volume_kind.clone();
            let pin = vec![(HOSTNAME.to_owned(), node.to_owned())];
            self.set(PersistentVolume {
                name: volume.clone(),
                kind: kind.unwrap_or_else(|| "csi".to_owned()),
                claim: None,
                pins: Some(pin).filter(|_| fields.node_local).into_iter().collect(),
            });
            self.retain(|known| VolumeAttachment::of(known).is_none_or(|known| known.volume != volume));
            for node in &fields.attached_to {
                let attachment = VolumeAttachment {
                    volume: volume.clone(),
                    node: node.clone(),
                };
                self.add(attachment.into());
            }
        }
        self.set(PersistentVolumeClaim {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            volume,
            storage_class: fields.storage_class.clone(),
            access_modes: fields.access_modes.clone(),
        });
    }
}

/// Whether both are of one kind and have one name.
fn is_replaced(known: &FactObject, new: &FactObject) -> bool {
    let is_like = match (known, new) {
        (FactObject::Owner(known), FactObject::Owner(new)) => known.reference.kind == new.reference.kind,
        _ => discriminant(known) == discriminant(new),
    };
    is_like && known.place() == new.place()
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
