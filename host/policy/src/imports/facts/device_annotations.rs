//! Devices that annotations of a pod name: device plugins, and the programs beside them, say so which ones it has.

use std::collections::BTreeMap;

use scupper_api::facts::DeviceId;
use serde_json::{Map, Value};

use super::resources::{DeviceOfPod, DeviceSource};

/// Devices of one pod.
const DEVICES: usize = 256;

/// The kinds and names of the devices in the text of an annotation.
type Reader = fn(&str) -> Vec<(String, String)>;

/// The annotations, and how each is read.
const ANNOTATIONS: [(&str, Reader); 3] = [
    ("dgxc.nvidia.com/devices", nvsentinel),
    ("hami.io/vgpu-devices-allocated", hami),
    ("huawei.com/AscendReal", ascend),
];

/// The devices that a pod has by its annotations.
pub(super) fn devices(annotations: &BTreeMap<String, String>) -> Vec<DeviceOfPod> {
    let named = ANNOTATIONS.iter().flat_map(|(key, read)| {
        let named = annotations.get(*key).map(|text| read(text)).unwrap_or_default();
        let device = |(driver, name): (String, String)| DeviceOfPod {
            source: DeviceSource::Annotation((*key).to_owned()),
            id: DeviceId {
                driver,
                pool: String::new(),
                name,
            },
            admin_access: false,
            attributes: BTreeMap::new(),
        };
        named.into_iter().map(device).collect::<Vec<_>>()
    });
    named.take(DEVICES).collect()
}

/// `{"devices": {"nvidia.com/gpu": ["GPU-1", "GPU-2"]}}`
fn nvsentinel(text: &str) -> Vec<(String, String)> {
    let whole: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let kinds = whole.get("devices").and_then(Value::as_object);
    let named = kinds.into_iter().flatten().flat_map(|(kind, names)| {
        let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| (kind.clone(), name.to_owned()))
    });
    named.collect()
}

/// `GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,3000,30:;`: the containers of the pod, and their devices with kind, memory and cores.
fn hami(text: &str) -> Vec<(String, String)> {
    let devices = text.split([';', ':']).filter_map(|device| {
        let (name, rest) = device.split_once(',')?;
        let (kind, _) = rest.split_once(',').unwrap_or((rest, ""));
        (!name.is_empty()).then(|| (kind.to_owned(), name.to_owned()))
    });
    devices.collect()
}

/// `Ascend910-0,Ascend910-1`
fn ascend(text: &str) -> Vec<(String, String)> {
    let names = text.split([',', ' ']).filter_map(|name| {
        let (kind, _) = name.rsplit_once('-')?;
        Some((format!("huawei.com/{kind}"), name.to_owned()))
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(key: &str, text: &str) -> Vec<String> {
        let found = devices(&BTreeMap::from([(key.to_owned(), text.to_owned())]));
        let shown = found.into_iter().map(|device| {
            assert_eq!(device.source, DeviceSource::Annotation(key.to_owned()));
            format!("{} {}", device.id.driver, device.id.name)
        });
        shown.collect()
    }

    #[test]
    fn each_annotation_is_read_in_its_own_form() {
        let text = r#"{"devices":{"nvidia.com/gpu":["GPU-1","GPU-2"],"nvidia.com/pgpu":["GPU-3"]}}"#;
        assert_eq!(
            named("dgxc.nvidia.com/devices", text),
            [
                "nvidia.com/gpu GPU-1",
                "nvidia.com/gpu GPU-2",
                "nvidia.com/pgpu GPU-3"
            ]
        );
        let text = "GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,3000,30:;;GPU-3,NVIDIA,20000,0:;";
        assert_eq!(
            named("hami.io/vgpu-devices-allocated", text),
            ["NVIDIA GPU-1", "NVIDIA GPU-2", "NVIDIA GPU-3"]
        );
        assert_eq!(
            named("huawei.com/AscendReal", "Ascend910-0,Ascend310P-1"),
            [
                "huawei.com/Ascend910 Ascend910-0",
                "huawei.com/Ascend310P Ascend310P-1"
            ]
        );
    }

    #[test]
    fn what_is_not_in_that_form_names_no_device() {
        for text in [
            "",
            "GPU-1",
            "[]",
            r#"{"devices":[]}"#,
            r#"{"devices":{"a":"b"}}"#,
            "{",
        ] {
            assert!(named("dgxc.nvidia.com/devices", text).is_empty(), "{text}");
        }
        for text in ["", ";", ":;", ",NVIDIA,1,1:;"] {
            assert!(named("hami.io/vgpu-devices-allocated", text).is_empty(), "{text}");
        }
        assert!(named("huawei.com/AscendReal", ", npu").is_empty());
        assert!(named("example.com/devices", "GPU-1,NVIDIA,1,1:").is_empty());
    }

    #[test]
    fn a_pod_has_a_limited_number_of_devices() {
        let many = "GPU-1,NVIDIA,1,1:".repeat(10_000);
        assert_eq!(named("hami.io/vgpu-devices-allocated", &many).len(), DEVICES);
    }
}
