//! Devices of DRA (dynamic resource allocation), for policies that ask about them: which ones a claim has, and what their
//! driver publishes about them. A cluster that does not serve `resource.k8s.io/v1` has none.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::listing::{self, Source};
use super::transport::escaped;
use super::wire::{Meta, Object, Texts, nullable};
use super::{Cluster, ReadError};

const GROUP: &str = "/apis/resource.k8s.io/v1";

/// What identifies a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceId {
    /// The DRA driver.
    pub driver: String,
    /// The pool.
    pub pool: String,
    /// The device in its pool.
    pub device: String,
}

/// A ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceClaim {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// The allocated devices; `None`: none are allocated yet.
    pub devices: Option<Vec<ClaimedDevice>>,
}

/// A device of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedDevice {
    /// Which device.
    pub id: DeviceId,
    /// For administration, while others use it.
    pub admin_access: bool,
}

/// The devices of one ResourceSlice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSlice {
    /// The node that the devices belong to; empty: not one node.
    pub node: String,
    /// Slices of a pool with a lower generation are out of date.
    generation: i64,
    /// The attributes of each device.
    pub devices: BTreeMap<DeviceId, Texts>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireClaim {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    allocation: Option<Allocation>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Allocation {
    #[serde(deserialize_with = "nullable")]
    devices: Devices,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Devices {
    #[serde(deserialize_with = "nullable")]
    results: Vec<Allocated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Allocated {
    driver: String,
    pool: String,
    device: String,
    #[serde(deserialize_with = "nullable")]
    admin_access: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireSlice {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SliceSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SliceSpec {
    driver: String,
    #[serde(deserialize_with = "nullable")]
    node_name: String,
    #[serde(deserialize_with = "nullable")]
    pool: Pool,
    #[serde(deserialize_with = "nullable")]
    devices: Vec<PublishedDevice>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Pool {
    name: String,
    generation: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PublishedDevice {
    name: String,
    #[serde(deserialize_with = "nullable")]
    attributes: BTreeMap<String, Attribute>,
}

/// An attribute has one of these. The driver has no use for lists.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Attribute {
    string: Option<String>,
    version: Option<String>,
    int: Option<i64>,
    bool: Option<bool>,
}

impl Cluster {
    /// Reads a ResourceClaim; `None` if it does not exist.
    pub async fn resource_claim(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ResourceClaim>, ReadError> {
        let path = format!("{}/{}", claims_of(namespace), escaped(name));
        let found = self
            .find::<WireClaim>(&path, &format!("resourceclaim {name}"))
            .await?;
        Ok(found.map(WireClaim::into_claim))
    }

    /// Reads ResourceClaims by namespace and name: of one namespace, or of all (`None`).
    pub async fn resource_claims(
        &self,
        namespace: Option<&str>,
        wanted: &BTreeSet<(String, String)>,
    ) -> Result<BTreeMap<(String, String), ResourceClaim>, ReadError> {
        let path = namespace.map_or_else(|| format!("{GROUP}/resourceclaims"), claims_of);
        let keeps = |claim: &WireClaim| wanted.contains(&claim.metadata.place());
        let listed = self
            .read_list_where::<WireClaim>(&Source::all(path), "list resourceclaims", keeps)
            .await;
        let listed = match listed {
            // The server does not know the kind.
            Err(ReadError::NotFound { .. }) => Vec::new(),
            listed => listed?,
        };
        let placed = |claim: WireClaim| (claim.metadata.place(), claim.into_claim());
        Ok(listed.into_iter().map(placed).collect())
    }

    /// Reads what drivers publish about the devices of a node.
    pub async fn device_attributes(&self, node: &str) -> Result<BTreeMap<DeviceId, Texts>, ReadError> {
        let selector = format!("fieldSelector=spec.nodeName={}", escaped(node));
        let listed = self
            .listed::<WireSlice>(
                format!("{GROUP}/resourceslices"),
                Some(selector),
                "list resourceslices",
            )
            .await?;
        Ok(DeviceSlice::together(
            listed.into_iter().map(WireSlice::into_slice).collect(),
        ))
    }

    /// Reads all of a kind; none if the API server does not serve it.
    async fn listed<T: DeserializeOwned>(
        &self,
        path: String,
        selector: Option<String>,
        what: &str,
    ) -> Result<Vec<T>, ReadError> {
        let source = Source {
            path,
            selector,
            optional: false,
        };
        match listing::list::<T>(self.client(), &source, self.options()).await {
            Ok((listed, _)) => Ok(listed),
            Err(fault) if fault.is_not_found() => Ok(Vec::new()),
            Err(fault) => Err(fault.read(what)),
        }
    }
}

fn claims_of(namespace: &str) -> String {
    format!("{GROUP}/namespaces/{}/resourceclaims", escaped(namespace))
}

impl DeviceSlice {
    /// The devices of all these slices. Of each pool only those of the latest generation count.
    pub fn together(slices: Vec<Self>) -> BTreeMap<DeviceId, Texts> {
        let mut latest: BTreeMap<(String, String), i64> = BTreeMap::new();
        let pool = |id: &DeviceId| (id.driver.clone(), id.pool.clone());
        for slice in &slices {
            for id in slice.devices.keys() {
                let known = latest.entry(pool(id)).or_insert(slice.generation);
                *known = slice.generation.max(*known);
            }
        }
        let current = slices.into_iter().flat_map(|slice| {
            let generation = slice.generation;
            let devices = slice.devices.into_iter();
            devices.map(move |(id, attributes)| (generation, id, attributes))
        });
        current
            .filter(|(generation, id, _)| latest.get(&pool(id)) == Some(generation))
            .map(|(_, id, attributes)| (id, attributes))
            .collect()
    }
}

impl WireClaim {
    pub(super) fn into_claim(self) -> ResourceClaim {
        let device = |allocated: Allocated| ClaimedDevice {
            id: DeviceId {
                driver: allocated.driver,
                pool: allocated.pool,
                device: allocated.device,
            },
            admin_access: allocated.admin_access,
        };
        let allocation = self.status.allocation;
        ResourceClaim {
            namespace: self.metadata.namespace,
            name: self.metadata.name,
            devices: allocation
                .map(|allocation| allocation.devices.results.into_iter().map(device).collect()),
        }
    }
}

impl WireSlice {
    pub(super) fn into_slice(self) -> DeviceSlice {
        let SliceSpec {
            driver,
            node_name,
            pool,
            devices,
        } = self.spec;
        let device = |published: PublishedDevice| {
            let id = DeviceId {
                driver: driver.clone(),
                pool: pool.name.clone(),
                device: published.name,
            };
            let attributes = published.attributes.into_iter();
            let texts = attributes.filter_map(|(name, value)| Some((name, value.into_text()?)));
            (id, texts.collect())
        };
        DeviceSlice {
            node: node_name,
            generation: pool.generation,
            devices: devices.into_iter().map(device).collect(),
        }
    }
}

impl Attribute {
    fn into_text(self) -> Option<String> {
        let number = self.int.map(|int| int.to_string());
        let flag = self.bool.map(|flag| flag.to_string());
        self.string.or(self.version).or(number).or(flag)
    }
}

impl Object for WireClaim {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Object for WireSlice {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn claim(value: Value) -> ResourceClaim {
        serde_json::from_value::<WireClaim>(value).unwrap().into_claim()
    }

    fn slice(value: Value) -> DeviceSlice {
        serde_json::from_value::<WireSlice>(value).unwrap().into_slice()
    }

    fn id(pool: &str, device: &str) -> DeviceId {
        DeviceId {
            driver: "gpu.nvidia.com".to_owned(),
            pool: pool.to_owned(),
            device: device.to_owned(),
        }
    }

    #[test]
    fn a_claim_has_the_devices_of_its_allocation() {
        let result = |device: &str| json!({"request": "gpu", "driver": "gpu.nvidia.com", "pool": "a", "device": device});
        let mut watched = result("gpu-1");
        watched["adminAccess"] = json!(true);
        let meta = json!({"namespace": "train", "name": "gpus"});
        let allocated = claim(json!({"metadata": meta,
            "status": {"allocation": {"devices": {"results": [result("gpu-0"), watched]}}}}));
        let device = |name, admin_access| ClaimedDevice {
            id: id("a", name),
            admin_access,
        };
        let devices = vec![device("gpu-0", false), device("gpu-1", true)];
        assert_eq!(allocated.devices, Some(devices));
        assert_eq!(
            (allocated.namespace.as_str(), allocated.name.as_str()),
            ("train", "gpus")
        );
        assert_eq!(claim(json!({"metadata": meta, "status": {}})).devices, None);
        assert_eq!(
            claim(json!({"metadata": meta, "status": {"allocation": {}}})).devices,
            Some(Vec::new())
        );
    }

    #[test]
    fn only_the_latest_slices_of_a_pool_count_and_attributes_are_texts() {
        let of = |pool: &str, generation: i64, device: &str, attributes: Value| {
            slice(
                json!({"metadata": {"name": "x"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "a",
                "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
                "devices": [{"name": device, "attributes": attributes}]}}),
            )
        };
        let attributes = json!({"uuid": {"string": "GPU-1"}, "index": {"int": 7}, "mig": {"bool": false},
            "driverVersion": {"version": "550.1.0"}, "links": {"strings": ["a"]}});
        let all = DeviceSlice::together(vec![
            of("a", 1, "gone", json!({})),
            of("a", 2, "gpu-0", attributes),
            of("b", 1, "gpu-0", Value::Null),
        ]);
        let names: Vec<_> = all.keys().cloned().collect();
        assert_eq!(names, [id("a", "gpu-0"), id("b", "gpu-0")]);
        let texts: Vec<_> = all[&id("a", "gpu-0")]
            .iter()
            .map(|(name, text)| format!("{name}={text}"))
            .collect();
        assert_eq!(
            texts,
            ["driverVersion=550.1.0", "index=7", "mig=false", "uuid=GPU-1"]
        );
    }
}
