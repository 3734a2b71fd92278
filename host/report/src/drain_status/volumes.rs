//! The volumes that a drain waits for: as text, as JSON, and in the published status.

use scupper_engine::{AttachedVolume, HumanDuration, Notice, Time, VolumeClaim, VolumesLeft};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::wire::short;
use crate::messages::one_line;
use scupper_common::clock::rfc3339;

/// Maximum number of volumes in the published status.
const VOLUMES: usize = 16;

/// The volumes that a drain waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumesStatus {
    /// What it waits for.
    pub left: VolumesLeft,
    /// Since when.
    pub since: Time,
    /// When the wait ends at the latest.
    pub until: Time,
}

/// As in the annotation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireVolumes {
    since: u64,
    until: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attached: Vec<WireVolume>,
    /// Why the volumes are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

/// Attachment, volume, namespace and name of the claim, attacher, problem.
type WireVolume = (String, String, Option<(String, String)>, String, String);

impl VolumesStatus {
    /// What a notice reports.
    pub(crate) fn of(notice: &Notice) -> Option<Self> {
        let Notice::AwaitsVolumes { left, since, until } = notice else {
            return None;
        };
        Some(Self {
            left: left.clone(),
            since: *since,
            until: *until,
        })
    }

    /// `waits for 34s, up to 4m26s more: 1 volume still attached: …`
    pub(crate) fn text(&self, now: Time) -> String {
        let waited = super::for_so_long(now.since(self.since));
        let more = HumanDuration(self.until.since(now));
        format!(
            "waits{waited}, up to {more} more: {}",
            one_line(&self.left.to_string())
        )
    }

    pub(crate) fn to_json(&self) -> Value {
        let times = json!({ "since": rfc3339(self.since), "until": rfc3339(self.until) });
        super::joined(times, volumes_to_json(&self.left))
    }

    pub(super) fn to_wire(&self) -> WireVolumes {
        let attached = self.left.attached().iter().take(VOLUMES);
        WireVolumes {
            since: self.since.as_millis(),
            until: self.until.as_millis(),
            attached: attached.map(volume_to_wire).collect(),
            unknown: match &self.left {
                VolumesLeft::Attached(_) => None,
                VolumesLeft::Unknown { message } => Some(short(message)),
            },
        }
    }

    pub(super) fn from_wire(wire: WireVolumes) -> Self {
        let attached = wire.attached.into_iter().map(volume_from_wire);
        Self {
            left: match wire.unknown {
                Some(message) => VolumesLeft::Unknown { message },
                None => VolumesLeft::Attached(attached.collect()),
            },
            since: Time::from_millis(wire.since),
            until: Time::from_millis(wire.until),
        }
    }
}

/// What is still attached, as fields of an object.
pub(crate) fn volumes_to_json(left: &VolumesLeft) -> Value {
    let attached = left.attached().iter().map(|volume| {
        json!({
            "attachment": volume.attachment, "volume": volume.volume, "attacher": volume.attacher,
            "claim": volume.claim.as_ref().map(VolumeClaim::to_string), "problem": volume.problem,
        })
    });
    json!({ "attached": attached.collect::<Vec<_>>(), "message": left.to_string() })
}

fn volume_to_wire(volume: &AttachedVolume) -> WireVolume {
    let claim = volume.claim.as_ref();
    (
        short(&volume.attachment),
        short(&volume.volume),
        claim.map(|claim| (short(&claim.namespace), short(&claim.name))),
        short(&volume.attacher),
        short(&volume.problem),
    )
}

fn volume_from_wire((attachment, volume, claim, attacher, problem): WireVolume) -> AttachedVolume {
    AttachedVolume {
        attachment,
        volume,
        claim: claim.map(|(namespace, name)| VolumeClaim { namespace, name }),
        attacher,
        problem,
    }
}
