//! Which GPUs a pod has.

use std::collections::{BTreeMap, BTreeSet};

use scupper_sdk::{
    Pod, count,
    facts::{self, Device, DeviceSource},
};

use crate::settings::Settings;

/// Which of the named GPUs a pod holds.
pub(crate) enum Holding {
    /// This one.
    Named(String),
    /// None of them.
    None,
    /// Unknown, for this reason.
    Unknown(String),
}

/// Annotations that are not trusted make a pod leave, but never stay: its owner can write them.
pub(crate) fn holding(settings: &Settings, pod: &Pod, named: &[String]) -> Result<Holding, facts::Error> {
    if pod.is_finished() {
        return Ok(Holding::None);
    }
    let resources = facts::resources(pod)?;
    let gpus = &settings.gpus;
    let (devices, requested): (Vec<_>, _) =
        (resources.devices_of(gpus).collect(), resources.requested_of(gpus));
    let has = |id: &&String| devices.iter().any(|device| device.is_gpu(id) == Some(true));
    if let Some(id) = named.iter().find(has) {
        return Ok(Holding::Named(id.clone()));
    }
    let (trusted, unproven): (Vec<&Device>, Vec<&Device>) = devices
        .into_iter()
        .partition(|device| settings.trusts(&device.source));
    let is_unclear = |device: &&&Device| named.iter().any(|id| device.is_gpu(id).is_none());
    let known = known(&trusted);
    Ok(if let Some(claim) = resources.unallocated_claims.first() {
        Holding::Unknown(format!("the devices of its ResourceClaim {claim} are unknown"))
    } else if requested > known {
        let requested = count(usize::try_from(requested).unwrap_or(usize::MAX), "GPU");
        let untrusted = match unproven.first().map(|device| &device.source) {
            Some(DeviceSource::Annotation(key)) => format!(" ({key} is not in trusted-annotations)"),
            _ => String::new(),
        };
        let why = if trusted.iter().any(|device| is_beside_requests(device)) {
            format!(
                "requests {requested} beside its ResourceClaims, but its trusted annotations name {known}"
            )
        } else {
            format!("requests {requested}, but its ResourceClaims and trusted annotations name {known}")
        };
        Holding::Unknown(format!("{why}{untrusted}"))
    } else if let Some(device) = trusted.iter().find(is_unclear) {
        Holding::Unknown(format!(
            "has {}, which may be one of them or a part of it",
            device.name
        ))
    } else {
        Holding::None
    })
}

/// A ResourceClaim that the pod's spec names is no part of what the pod requests: a device plugin gives it that.
const fn is_beside_requests(device: &Device) -> bool {
    matches!(device.source, DeviceSource::ResourceClaim(_))
}

/// How many of the GPUs that a pod requests are known. Two annotations may name the same one.
fn known(trusted: &[&Device]) -> u64 {
    let (beside, requested): (Vec<&Device>, Vec<&Device>) = trusted
        .iter()
        .copied()
        .partition(|device| is_beside_requests(device));
    let beside: BTreeSet<&str> = beside.into_iter().map(id).collect();
    let mut of_sources: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for device in requested {
        let (DeviceSource::Annotation(source)
        | DeviceSource::ExtendedResourceClaim(source)
        | DeviceSource::ResourceClaim(source)) = &device.source;
        *of_sources.entry((id(device), source)).or_default() += 1;
    }
    let mut most: BTreeMap<&str, u64> = BTreeMap::new();
    for ((id, _), times) in of_sources {
        let most = most.entry(id).or_default();
        *most = times.max(*most);
    }
    let known = most.into_iter().filter(|(id, _)| !beside.contains(id));
    known.map(|(_, times)| times).sum()
}

/// What both a ResourceClaim and an annotation call a GPU.
fn id(device: &Device) -> &str {
    device.attribute("uuid").unwrap_or(&device.name)
}
