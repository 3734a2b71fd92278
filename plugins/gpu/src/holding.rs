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
    let has = |id: &&String| devices.iter().any(|device| device.is_gpu(id) == Some(true));
    if let Some(id) = named.iter().find(has) {
        return Ok(Holding::Named(id.clone()));
    }
    let is_unclear = |device: &&&Device| named.iter().any(|id| device.is_gpu(id).is_none());
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
