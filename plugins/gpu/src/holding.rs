//! Which GPUs a pod has.

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
    Ok(if let Some(claim) = resources.unallocated_claims.first() {
        Holding::Unknown(format!("the devices of its ResourceClaim {claim} are unknown"))
    } else if requested > trusted.len() as u64 {
        let requested = count(usize::try_from(requested).unwrap_or(usize::MAX), "GPU");
        let known = trusted.len();
        let beside = match unproven.first().map(|device| &device.source) {
            Some(DeviceSource::Annotation(key)) => format!(" ({key} is not in trusted-annotations)"),
            _ => String::new(),
        };
        Holding::Unknown(format!(
            "requests {requested}, but its ResourceClaims and trusted annotations name {known}{beside}"
        ))
    } else if let Some(device) = trusted.iter().find(is_unclear) {
        Holding::Unknown(format!(
            "has {}, which may be one of them or a part of it",
            device.name
        ))
    } else {
        Holding::None
    })
}
