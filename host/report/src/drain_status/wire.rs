//! Encodes the status as compact JSON that never exceeds its size limit, whatever the input.

use scupper_engine::{HookPhase, Subject, Time, Uid, WaitingOn};
use serde::{Deserialize, Serialize};

use super::force::WireForce;
use super::pods::{self, WirePods};
use super::volumes::WireVolumes;
use super::{
    DrainStatus, Estimate, ForceStatus, HookStatus, PlanSummary, PodGroup, SurgeSummary, VolumesStatus,
    WaveStatus,
};

/// The format version that this build writes and reads.
const VERSION: u32 = 1;

/// Maximum length of a text from outside, in bytes.
const TEXT: usize = 200;
/// Maximum number of hooks, and of objects that one hook waits for.
const HOOKS: usize = 8;
const WAITS: usize = 8;
/// Maximum number of waves in a plan, of reasons why pods are kept, and of restarts.
const GROUPS: usize = 12;
/// Maximum size without the kept pods, in bytes. The annotations of a node share 256 KiB, and other writers need most of it.
const ALL: usize = 56 * 1024;

#[derive(Debug, Serialize, Deserialize)]
struct Wire {
    v: u32,
    drain: String,
    at: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    off: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<WirePlan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wave: Option<(String, u32, u32)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<WireHook>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    volumes: Option<WireVolumes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    force: Option<WireForce>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    estimate: Option<[u64; 3]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pods: Vec<WirePods>,
    more: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kept: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WirePlan {
    leaving: u32,
    staying: u32,
    waves: Vec<WireGroup>,
    stays: Vec<WireGroup>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<WireGroup>,
    #[serde(default, skip_serializing_if = "SurgeSummary::is_empty")]
    surge: SurgeSummary,
}

/// Wave or reason, policy, pods, and the number of further pods.
type WireGroup = (String, String, Vec<String>, u32);

#[derive(Debug, Serialize, Deserialize)]
struct WireHook {
    policy: String,
    phase: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wave: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    since: u64,
    progress: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waits: Vec<(String, String, Option<u64>)>,
}

/// Encodes the status for the annotation. Items that do not fit are counted.
pub fn encode(view: &DrainStatus) -> String {
    let mut wire = Wire {
        v: VERSION,
        drain: short(&view.drain),
        at: view.at.as_millis(),
        off: view.machine_is_off,
        ended: view.ended.as_deref().map(short),
        plan: view.plan.as_ref().map(plan_to_wire),
        wave: view.wave.as_ref().map(|it| (short(&it.name), it.number, it.of)),
        hooks: view.hooks.iter().take(HOOKS).map(hook_to_wire).collect(),
        volumes: view.volumes.as_ref().map(VolumesStatus::to_wire),
        force: view.force.as_ref().map(ForceStatus::to_wire),
        estimate: view.estimate.map(|ends| ends.0.map(Time::as_millis)),
        pods: Vec::new(),
        more: view.more,
        kept: Vec::new(),
    };
    let (pods, without_room) = pods::to_wire(&view.pods, ALL.saturating_sub(to_text(&wire).len()));
    wire.pods = pods;
    wire.more = view.more.saturating_add(number(without_room));
    if wire.more > 0 {
        wire.kept = pods::kept_to_wire(&view.kept);
    }
    to_text(&wire)
}

/// Decodes the annotation; `None` if its version is unknown or its content is broken.
pub fn decode(text: &str) -> Option<DrainStatus> {
    let wire: Wire = serde_json::from_str(text).ok()?;
    if wire.v != VERSION {
        return None;
    }
    let published: usize = wire.pods.iter().map(WirePods::len).sum();
    let pods = pods::from_wire(wire.pods);
    // With a reason that this build does not know.
    let others = number(published.saturating_sub(pods.len()));
    Some(DrainStatus {
        drain: wire.drain,
        at: Time::from_millis(wire.at),
        machine_is_off: wire.off,
        ended: wire.ended,
        plan: wire.plan.map(plan_from_wire),
        wave: wire
            .wave
            .map(|(name, number, of)| WaveStatus { name, number, of }),
        hooks: wire.hooks.into_iter().filter_map(hook_from_wire).collect(),
        volumes: wire.volumes.map(VolumesStatus::from_wire),
        force: wire.force.map(ForceStatus::from_wire),
        estimate: wire.estimate.map(|ends| Estimate(ends.map(Time::from_millis))),
        pods,
        more: wire.more.saturating_add(others),
        kept: wire.kept.into_iter().map(Uid::new).collect(),
    })
}

fn plan_to_wire(plan: &PlanSummary) -> WirePlan {
    let groups = |groups: &[PodGroup]| {
        let groups = groups.iter().take(GROUPS).map(|group| {
            let pods = group.pods.iter().map(|uid| short(uid.as_str())).collect();
            (short(&group.what), short(&group.policy), pods, group.more)
        });
        groups.collect()
    };
    WirePlan {
        leaving: plan.leaving,
        staying: plan.staying,
        waves: groups(&plan.waves),
        stays: groups(&plan.stays),
        refused: groups(&plan.refused),
        surge: plan.surge.shortened(GROUPS),
    }
}

fn plan_from_wire(wire: WirePlan) -> PlanSummary {
    let groups = |groups: Vec<WireGroup>| {
        let groups = groups.into_iter().map(|(what, policy, pods, more)| PodGroup {
            what,
            policy,
            pods: pods.into_iter().map(Uid::new).collect(),
            more,
        });
        groups.collect()
    };
    PlanSummary {
        leaving: wire.leaving,
        staying: wire.staying,
        waves: groups(wire.waves),
        stays: groups(wire.stays),
        refused: groups(wire.refused),
        surge: wire.surge,
    }
}

fn hook_to_wire(hook: &HookStatus) -> WireHook {
    let (wave, pod) = match &hook.subject {
        Subject::Node => (None, None),
        Subject::Wave(name) => (Some(short(name)), None),
        Subject::Pod(uid) => (None, Some(uid.as_str().to_owned())),
    };
    let waits = hook.waiting_for.iter().take(WAITS);
    WireHook {
        policy: short(&hook.policy),
        phase: hook.phase.to_string(),
        wave,
        pod,
        since: hook.since.as_millis(),
        progress: short(&hook.progress),
        waits: waits
            .map(|on| (short(&on.what), short(&on.detail), on.since.map(Time::as_millis)))
            .collect(),
    }
}

fn hook_from_wire(wire: WireHook) -> Option<HookStatus> {
    let waits = wire.waits.into_iter().map(|(what, detail, since)| WaitingOn {
        what,
        detail,
        since: since.map(Time::from_millis),
    });
    Some(HookStatus {
        policy: wire.policy,
        phase: HookPhase::from_name(&wire.phase)?,
        subject: match (wire.wave, wire.pod) {
            (Some(wave), _) => Subject::Wave(wave),
            (None, Some(uid)) => Subject::Pod(Uid::new(uid)),
            (None, None) => Subject::Node,
        },
        since: Time::from_millis(wire.since),
        progress: wire.progress,
        waiting_for: waits.collect(),
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Serializing strings and numbers never fails.
pub(super) fn to_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Shortens a text from outside.
pub(super) fn short(text: &str) -> String {
    text.get(..text.floor_char_boundary(TEXT))
        .unwrap_or_default()
        .to_owned()
}
