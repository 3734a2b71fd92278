//! What a pod requests, and its devices.

use std::collections::BTreeMap;

use scupper_api::facts::{
    ClaimedDevice, DeviceId, DeviceSlice, FactKind, FactQuery, FactType as _, PodSpec, ResourceClaim, Texts,
};
use scupper_policy_spec::Fact;

use super::cache::{Answer, FactReader, Facts, spec_of};
use super::caller::{CallerPod, FactCaller};
use crate::wit::bindings::scupper::drain::facts;
use crate::wit::to_wit_owned::entries;

/// What a pod requests and has.
#[derive(Debug, Default)]
struct ResourcesOfPod {
    requests: BTreeMap<String, u64>,
    devices: Vec<DeviceOfPod>,
    unallocated: Vec<String>,
}

/// A device of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceOfPod {
    pub(super) source: DeviceSource,
    pub(super) id: DeviceId,
    pub(super) admin_access: bool,
    pub(super) attributes: Texts,
}

/// Where it says that a pod has a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeviceSource {
    /// The ResourceClaim of this name.
    Claim(String),
    /// That which the scheduler made for requests of the pod.
    ExtendedClaim(String),
    /// The annotation with this key.
    Annotation(String),
}

impl Facts {
    /// What a pod of the call requests, and its devices.
    pub(crate) async fn resources(&self, caller: &FactCaller, uid: &str) -> Answer<facts::Resources> {
        let pod = caller.pod(uid)?;
        let mut reader = self.reader(caller).await;
        let found = reader.resources(pod).await?;
        reader.count(Fact::Resources, &[uid], found.bytes())?;
        let request = |(name, amount)| facts::ResourceRequest { name, amount };
        Ok(facts::Resources {
            requests: found.requests.into_iter().map(request).collect(),
            devices: found.devices.into_iter().map(to_wit).collect(),
            unallocated_claims: found.unallocated,
        })
    }
}

impl FactReader<'_> {
    /// The spec of a pod; `None`: it is gone.
    pub(super) async fn spec(&mut self, pod: &CallerPod) -> Answer<Option<PodSpec>> {
        let (kind, place) = spec_of(pod);
        self.one(kind, place).await
    }

    async fn resources(&mut self, pod: &CallerPod) -> Answer<ResourcesOfPod> {
        let mut found = ResourcesOfPod {
            devices: pod.devices.clone(),
            ..ResourcesOfPod::default()
        };
        let Some(spec) = self.spec(pod).await? else {
            return Ok(found);
        };
        found.requests = spec.requests;
        let mut claimed = Vec::new();
        for claim in spec.claims {
            let made = match &claim.claim {
                Some(name) => {
                    let place = (pod.id.namespace.clone(), name.clone());
                    self.one::<ResourceClaim>(FactKind::ResourceClaim, place).await?
                }
                None => None,
            };
            let source = match claim.name.is_empty() {
                true => DeviceSource::ExtendedClaim,
                false => DeviceSource::Claim,
            };
            let name = claim.claim.unwrap_or(claim.name);
            let device = |device| (source(name.clone()), device);
            match made.and_then(|made| made.devices) {
                Some(devices) => claimed.extend(devices.into_iter().map(device)),
                None => found.unallocated.push(name),
            }
        }
        if !claimed.is_empty() {
            let kind = FactKind::DeviceSlice {
                node: pod.node.clone(),
            };
            let slices = self.ask(FactQuery::all(kind), |_| true).await?;
            let published = DeviceSlice::together(slices.iter().filter_map(DeviceSlice::of));
            let device = |(source, ClaimedDevice { id, admin_access })| DeviceOfPod {
                source,
                attributes: published
                    .get(&id)
                    .map(|texts| (*texts).clone())
                    .unwrap_or_default(),
                id,
                admin_access,
            };
            found.devices.extend(claimed.into_iter().map(device));
        }
        Ok(found)
    }
}

fn to_wit(device: DeviceOfPod) -> facts::Device {
    facts::Device {
        source: match device.source {
            DeviceSource::Claim(name) => facts::DeviceSource::ResourceClaim(name),
            DeviceSource::ExtendedClaim(name) => facts::DeviceSource::ExtendedResourceClaim(name),
            DeviceSource::Annotation(key) => facts::DeviceSource::Annotation(key),
        },
        driver: device.id.driver,
        pool: device.id.pool,
        name: device.id.name,
        admin_access: device.admin_access,
        attributes: entries(device.attributes),
    }
}

impl ResourcesOfPod {
    /// The bytes of its texts.
    fn bytes(&self) -> usize {
        let requests = self.requests.keys().map(String::len);
        let devices = self.devices.iter().map(DeviceOfPod::bytes);
        requests
            .chain(devices)
            .chain(self.unallocated.iter().map(String::len))
            .sum()
    }
}

impl DeviceOfPod {
    fn bytes(&self) -> usize {
        let (DeviceSource::Claim(source)
        | DeviceSource::ExtendedClaim(source)
        | DeviceSource::Annotation(source)) = &self.source;
        let DeviceId { driver, pool, name } = &self.id;
        let texts = [source, driver, pool, name].into_iter();
        let attributes = self.attributes.iter().flat_map(|(key, value)| [key, value]);
        texts.chain(attributes).map(String::len).sum()
    }
}
