//! The pods of a status in its annotation: those with the same wave and the same reason share these, so that hundreds of
//! pods have room. Those without room are counted.

use std::collections::BTreeMap;

use scupper_engine::{Reason, Time, Uid};
use serde::{Deserialize, Serialize};

use super::PodStatus;
use super::reason::{self, WireReason};
use super::wire::{short, to_text};

/// Maximum size of all pods together, in bytes: 500 pods with few reasons.
const ROOM: usize = 32 * 1024;
/// Maximum size of the pods that are kept, in bytes: 100 pods.
const KEPT: usize = 4 * 1024;

/// Pods with the same wave and the same reason.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WirePods {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    wave: String,
    #[serde(flatten)]
    reason: WireReason,
    pods: Vec<WirePod>,
}

/// A pod, and since when it has had the reason.
type WirePod = (String, Option<u64>);

impl WirePods {
    /// How many they are.
    pub(super) const fn len(&self) -> usize {
        self.pods.len()
    }
}

/// Encodes pods, and counts those without room. `room`: the bytes that the other parts of the status have left.
pub(super) fn to_wire(pods: &[PodStatus], room: usize) -> (Vec<WirePods>, usize) {
    let mut groups: Vec<WirePods> = Vec::new();
    let mut places = BTreeMap::new();
    let (mut room, mut without) = (room.min(ROOM), 0);
    // That a pod is terminating everybody sees.
    let (last, first): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| is_terminating(&pod.reason));
    for pod in first.into_iter().chain(last) {
        let own: WirePod = (short(pod.uid.as_str()), pod.since.map(Time::as_millis));
        let group = WirePods {
            wave: short(&pod.wave),
            reason: reason::to_wire(&pod.reason),
            pods: Vec::new(),
        };
        let shared = to_text(&group);
        let known = places.get(&shared).copied();
        let size = to_text(&own).len() + 1 + if known.is_none() { shared.len() + 1 } else { 0 };
        let Some(rest) = room.checked_sub(size) else {
            without += 1;
            continue;
        };
        room = rest;
        let place = known.unwrap_or(groups.len());
        if known.is_none() {
            places.insert(shared, place);
            groups.push(group);
        }
        if let Some(group) = groups.get_mut(place) {
            group.pods.push(own);
        }
    }
    (groups, without)
}

/// The first of the pods that are kept.
pub(super) fn kept_to_wire(kept: &[Uid]) -> Vec<String> {
    let mut room = KEPT;
    let fitting = kept.iter().map(|uid| short(uid.as_str())).map_while(|uid| {
        room = room.checked_sub(to_text(&uid).len() + 1)?;
        Some(uid)
    });
    fitting.collect()
}

/// Decodes them; those whose reason this build does not know are left out.
pub(super) fn from_wire(groups: Vec<WirePods>) -> Vec<PodStatus> {
    let groups = groups.into_iter().filter_map(|group| {
        let reason = reason::from_wire(group.reason)?;
        let pods = group.pods.into_iter().map(move |(uid, since)| PodStatus {
            uid: Uid::new(uid),
            wave: group.wave.clone(),
            since: since.map(Time::from_millis),
            reason: reason.clone(),
        });
        Some(pods)
    });
    groups.flatten().collect()
}

const fn is_terminating(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::Terminating { .. } | Reason::TerminatingPastGrace { .. }
    )
}
