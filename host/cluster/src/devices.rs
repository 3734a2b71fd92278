//! Devices of DRA (dynamic resource allocation), for policies that ask about them: which ones a claim has, and what their
//! driver publishes about them. A cluster that does not serve `resource.k8s.io/v1` has none.

use std::collections::BTreeMap;

use scupper_api::facts::{ClaimedDevice, DeviceId, DeviceSlice, FactKind, FactObject, ResourceClaim};
use serde::Deserialize;

use super::facts::WireFact;
use super::wire::{Meta, nullable};

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

impl WireFact for WireClaim {
    fn into_fact(self, _kind: &FactKind) -> FactObject {
        let device = |allocated: Allocated| ClaimedDevice {
            id: DeviceId {
                driver: allocated.driver,
                pool: allocated.pool,
                name: allocated.device,
            },
            admin_access: allocated.admin_access,
        };
        let allocation = self.status.allocation;
        let claim = ResourceClaim {
            namespace: self.metadata.namespace,
            name: self.metadata.name,
            devices: allocation
                .map(|allocation| allocation.devices.results.into_iter().map(device).collect()),
        };
        claim.into()
    }
}

impl WireFact for WireSlice {
    fn into_fact(self, _kind: &FactKind) -> FactObject {
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
                name: published.name,
            };
            let attributes = published.attributes.into_iter();
            let texts = attributes.filter_map(|(name, value)| Some((name, value.into_text()?)));
            (id, texts.collect())
        };
        let slice = DeviceSlice {
            node: node_name,
            generation: pool.generation,
            devices: devices.into_iter().map(device).collect(),
        };
        slice.into()
    }
}

impl Attribute {
    fn into_text(self) -> Option<String> {
        let number = self.int.map(|int| int.to_string());
        let flag = self.bool.map(|flag| flag.to_string());
        self.string.or(self.version).or(number).or(flag)
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::decoded;
    use super::*;
    use serde_json::{Value, json};

    fn claim(value: Value) -> ResourceClaim {
        decoded(&FactKind::ResourceClaim, value)
    }

    fn slice(value: Value) -> DeviceSlice {
        decoded(&FactKind::DeviceSlice { node: String::new() }, value)
    }

    fn id(pool: &str, device: &str) -> DeviceId {
        DeviceId {
            driver: "gpu.nvidia.com".to_owned(),
            pool: pool.to_owned(),
            name: device.to_owned(),
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
        let slices = [
            of("a", 1, "gone", json!({})),
            of("a", 2, "gpu-0", attributes),
            of("b", 1, "gpu-0", Value::Null),
        ];
        let all = DeviceSlice::together(slices.iter());
        let names: Vec<DeviceId> = all.keys().map(|id| (*id).clone()).collect();
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
