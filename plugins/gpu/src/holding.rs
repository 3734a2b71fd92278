//! Which GPUs a pod has.

use scupper_sdk::{
    Pod, count,
    facts::{self, Device},
};

/// Which of the named GPUs a pod holds.
pub(crate) enum Holding {
    /// This one.
    Named(String),
    /// None of them.
    None,
    /// Unknown, for this reason.
    Unknown(String),
}

/// `gpus`: patterns that match GPUs.
pub(crate) fn holding(gpus: &[String], pod: &Pod, named: &[String]) -> Result<Holding, facts::Error> {
    if pod.is_finished() {
        return Ok(Holding::None);
    }
    let resources = facts::resources(pod)?;
    let (devices, requested): (Vec<_>, _) =
        (resources.devices_of(gpus).collect(), resources.requested_of(gpus));
    let has = |id: &&String| devices.iter().any(|device| is(device, id) == Some(true));
    if let Some(id) = named.iter().find(has) {
        return Ok(Holding::Named(id.clone()));
    }
    let is_unclear = |device: &&&Device| named.iter().any(|id| is(device, id).is_none());
    Ok(if let Some(claim) = resources.unallocated_claims.first() {
        Holding::Unknown(format!("the devices of its ResourceClaim {claim} are unknown"))
    } else if requested > devices.len() as u64 {
        let requested = count(usize::try_from(requested).unwrap_or(usize::MAX), "GPU");
        let known = devices.len();
        Holding::Unknown(format!(
            "requests {requested}, but its annotations and ResourceClaims name {known}"
        ))
    } else if let Some(device) = devices.iter().find(is_unclear) {
        Holding::Unknown(format!(
            "has {}, which may be one of them or a part of it",
            device.name
        ))
    } else {
        Holding::None
    })
}

/// Whether a device is this GPU or a part of it; `None`: the device's attributes do not tell.
fn is(device: &Device, id: &str) -> Option<bool> {
    let known = if is_uuid(id) {
        let uuids = [
            device.attribute("parentUUID"),
            device.attribute("uuid"),
            Some(&device.name),
        ];
        // Replicas of a shared GPU have a number behind its UUID: `GPU-41f0::1`.
        let mut uuids = uuids
            .into_iter()
            .flatten()
            .filter_map(|uuid| uuid.split("::").next());
        uuids.find(|uuid| is_uuid(uuid))
    } else if id.parse::<u32>().is_ok() {
        // A part's `index` is its own.
        device
            .attribute("parentIndex")
            .or_else(|| device.attribute("index"))
    } else {
        None
    };
    known.map(|known| known == id)
}

/// Whether it is the UUID of a whole GPU; those of parts are like `MIG-7d2c`.
fn is_uuid(text: &str) -> bool {
    text.starts_with("GPU-")
}
