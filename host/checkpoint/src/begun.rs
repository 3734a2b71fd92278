//! The wire format of what a drain has begun.

use std::collections::{BTreeMap, BTreeSet};

use scupper_common::packed_uids;
use scupper_engine::{Begun, Time};
use serde::{Deserialize, Serialize};

use super::{CheckpointFault, uids_from_wire};

/// Times in milliseconds. Older builds neither write nor read it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WireBegun {
    #[serde(skip_serializing_if = "Option::is_none")]
    cordon: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evictions: Option<u64>,
    /// Until when each holds up the next one; `null`: until its pods are gone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    waves: BTreeMap<String, Option<u64>>,
    /// UIDs, packed, and those that cannot be.
    #[serde(skip_serializing_if = "String::is_empty")]
    late: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    late_others: Vec<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    planners: BTreeSet<String>,
}

/// `None`: nothing has begun.
pub(super) fn to_wire(begun: &Begun) -> Option<WireBegun> {
    if *begun == Begun::default() {
        return None;
    }
    let (late, late_others) = packed_uids::pack(begun.late.iter().map(|uid| uid.as_str()).collect());
    let wave = |(name, until): (&String, &Option<Time>)| (name.clone(), until.map(Time::as_millis));
    Some(WireBegun {
        cordon: begun.cordon.map(Time::as_millis),
        evictions: begun.evictions.map(Time::as_millis),
        waves: begun.waves.iter().map(wave).collect(),
        late,
        late_others,
        planners: begun.planners.clone(),
    })
}

pub(super) fn from_wire(wire: WireBegun) -> Result<Begun, CheckpointFault> {
    let wave = |(name, until): (String, Option<u64>)| (name, until.map(Time::from_millis));
    Ok(Begun {
        cordon: wire.cordon.map(Time::from_millis),
        evictions: wire.evictions.map(Time::from_millis),
        waves: wire.waves.into_iter().map(wave).collect(),
        late: uids_from_wire(&wire.late, wire.late_others)?.collect(),
        planners: wire.planners,
    })
}
