//! Where a drain stands, as text: [`LeasedDrain`] in the node's Lease, and the checkpoint, compact JSON in one annotation
//! of the node.
//!
//! The checkpoint's size is bounded by its content: 500 pods with finished hooks take 11 KiB. A reader ignores unknown fields, and
//! rejects unknown versions. It must not know how the two are read and written.
#![deny(missing_docs)]

mod begun;
#[cfg(test)]
mod error_texts;
mod leased_drain;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use scupper_common::packed_uids;
use scupper_engine::{
    Checkpoint, Counts, DeploymentRef, HookPhase, Intent, Phase, Raised, SavedHook, Subject, Time, ToUndo,
    Totals, Uid, whole_millis,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::begun::WireBegun;
pub use self::leased_drain::LeasedDrain;

/// The version that this build writes and reads.
const VERSION: u32 = 1;

/// The API server accepts 256 KiB of annotations per node; other writers need some of it.
const MAX_BYTES: usize = 192 * 1024;

/// The reason why a checkpoint cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckpointFault {
    /// The text is damaged, or not a checkpoint.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// A newer build wrote it.
    #[error("it has version {0}, and this build knows version {VERSION}")]
    Version(u32),
    /// It names something unknown to this build.
    #[error("it has an unknown {0}")]
    Unknown(&'static str),
    /// It was copied from another node.
    #[error("it was written for another node of this name")]
    OtherNode,
    /// It does not fit into an annotation.
    #[error("it takes {0} bytes, more than the {MAX_BYTES} that fit into the node's annotations")]
    TooLarge(usize),
}

#[derive(Debug, Deserialize)]
struct Versioned {
    v: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Wire {
    v: u32,
    node: String,
    id: String,
    name: String,
    by: String,
    intent: String,
    phase: String,
    started: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only_pods: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    own_cordon: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    inherited: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    ahead: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    drained: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancelled: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    to_undo: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    left_before: BTreeSet<String>,
    /// Why they have not, for those that have said so; older builds neither write nor read it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    undo_words: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<WireHook>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    done: Vec<WireDone>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    returns: BTreeMap<String, u32>,
    /// UIDs, packed, and those that cannot be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stays: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stays_others: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    ended_well: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    raised: Vec<WireRaised>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    volumes_since: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begun: Option<WireBegun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counts: Option<WireCounts>,
}

/// Times in milliseconds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct WireCounts {
    at: u64,
    leaving: u32,
    /// Older builds do not write it.
    newest: Option<u64>,
    gone: u32,
    deleted: u32,
    waves: u32,
    evictions: u32,
    deletions: u32,
    refusals: u32,
    steps: u32,
    hook_wait: u64,
    budget_wait: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireHook {
    policy: String,
    phase: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wave: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    state: String,
    /// Of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    started: u64,
}

/// The finished work of one policy in one phase.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct WireDone {
    policy: String,
    phase: String,
    #[serde(skip_serializing_if = "is_false")]
    node: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waves: Vec<String>,
    /// UIDs, packed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pods: String,
    /// UIDs that cannot be packed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<String>,
}

/// A Deployment whose replicas are to be taken back.
#[derive(Debug, Serialize, Deserialize)]
struct WireRaised {
    namespace: String,
    name: String,
    uid: String,
    drain: String,
    /// UIDs, packed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pods: String,
    /// UIDs that cannot be packed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<String>,
}

/// Encodes a checkpoint for the annotation. Decoding returns `done` sorted: it is a set.
///
/// # Errors
/// It is too large for an annotation.
pub fn encode(checkpoint: &Checkpoint) -> Result<String, CheckpointFault> {
    let (stays, stays_others) = packed_uids::pack(checkpoint.stays.iter().map(|uid| uid.as_str()).collect());
    let wire = Wire {
        v: VERSION,
        node: checkpoint.node.as_str().to_owned(),
        id: checkpoint.id.clone(),
        name: checkpoint.name.clone(),
        by: checkpoint.trigger.clone(),
        intent: checkpoint.intent.name().to_owned(),
        phase: checkpoint.phase.name().to_owned(),
        started: checkpoint.started.as_millis(),
        deadline: checkpoint.deadline.map(Time::as_millis),
        only_pods: checkpoint.only_pods,
        own_cordon: checkpoint.own_cordon,
        inherited: checkpoint.inherited,
        ahead: checkpoint.ahead,
        drained: checkpoint.drained,
        cancelled: checkpoint.cancelled.clone(),
        held: checkpoint.held,
        to_undo: checkpoint.to_undo.keys().cloned().collect(),
        left_before: checkpoint.left_before.clone(),
        undo_words: undo_words(&checkpoint.to_undo),
        hooks: checkpoint.hooks.iter().map(hook_to_wire).collect(),
        done: done_to_wire(&checkpoint.done),
        returns: checkpoint.returns.clone(),
        stays,
        stays_others,
        ended_well: checkpoint.ended_well,
        raised: checkpoint.raised.iter().map(raised_to_wire).collect(),
        volumes_since: checkpoint.volumes_since.map(Time::as_millis),
        begun: begun::to_wire(&checkpoint.begun),
        counts: (checkpoint.counts != Counts::default()).then(|| counts_to_wire(&checkpoint.counts)),
    };
    let text =
        serde_json::to_string(&wire).map_err(|error| CheckpointFault::Unreadable(error.to_string()))?;
    if text.len() > MAX_BYTES {
        Err(CheckpointFault::TooLarge(text.len()))
    } else {
        Ok(text)
    }
}

/// Decodes the annotation's text.
///
/// # Errors
/// It is damaged, or names what this build does not know.
pub fn decode(text: &str) -> Result<Checkpoint, CheckpointFault> {
    let unreadable = |error: serde_json::Error| CheckpointFault::Unreadable(error.to_string());
    let Versioned { v } = serde_json::from_str(text).map_err(unreadable)?;
    if v != VERSION {
        return Err(CheckpointFault::Version(v));
    }
    let wire: Wire = serde_json::from_str(text).map_err(unreadable)?;
    let mut done = Vec::new();
    for group in wire.done {
        done_from_wire(group, &mut done)?;
    }
    let hooks: Result<_, _> = wire.hooks.into_iter().map(hook_from_wire).collect();
    let raised: Result<_, _> = wire.raised.into_iter().map(raised_from_wire).collect();
    Ok(Checkpoint {
        node: Uid::new(wire.node),
        id: wire.id,
        name: wire.name,
        trigger: wire.by,
        intent: intent_from_name(&wire.intent).ok_or(CheckpointFault::Unknown("intent"))?,
        phase: Phase::from_name(&wire.phase).ok_or(CheckpointFault::Unknown("phase"))?,
        started: Time::from_millis(wire.started),
        deadline: wire.deadline.map(Time::from_millis),
        only_pods: wire.only_pods,
        own_cordon: wire.own_cordon,
        inherited: wire.inherited,
        ahead: wire.ahead,
        drained: wire.drained,
        cancelled: wire.cancelled,
        held: wire.held,
        to_undo: to_undo_from_wire(wire.to_undo, wire.undo_words),
        left_before: wire.left_before,
        hooks: hooks?,
        ended_well: wire.ended_well,
        done,
        returns: wire.returns,
        stays: uids_from_wire(&wire.stays, wire.stays_others)?.collect(),
        raised: raised?,
        volumes_since: wire.volumes_since.map(Time::from_millis),
        begun: Box::new(begun::from_wire(wire.begun.unwrap_or_default())?),
        counts: wire.counts.map(counts_from_wire).unwrap_or_default(),
    })
}

fn undo_words(to_undo: &ToUndo) -> BTreeMap<String, String> {
    let has_words = to_undo.iter().filter(|(_, words)| !words.is_empty());
    has_words
        .map(|(policy, words)| (policy.clone(), words.clone()))
        .collect()
}

fn to_undo_from_wire(policies: BTreeSet<String>, mut words: BTreeMap<String, String>) -> ToUndo {
    let with_words = policies.into_iter().map(|policy| {
        let words = words.remove(&policy).unwrap_or_default();
        (policy, words)
    });
    with_words.collect()
}

fn counts_to_wire(counts: &Counts) -> WireCounts {
    WireCounts {
        at: counts.at.as_millis(),
        leaving: counts.leaving,
        newest: Some(counts.newest.as_millis()),
        gone: counts.totals.gone,
        deleted: counts.totals.deleted,
        waves: counts.totals.waves,
        evictions: counts.totals.evictions,
        deletions: counts.totals.deletions,
        refusals: counts.totals.budget_refusals,
        steps: counts.totals.hook_steps,
        hook_wait: whole_millis(counts.totals.hook_wait),
        budget_wait: whole_millis(counts.totals.budget_wait),
    }
}

fn counts_from_wire(wire: WireCounts) -> Counts {
    Counts {
        at: Time::from_millis(wire.at),
        leaving: wire.leaving,
        newest: Time::from_millis(wire.newest.unwrap_or(wire.at)),
        totals: Totals {
            gone: wire.gone,
            deleted: wire.deleted,
            waves: wire.waves,
            evictions: wire.evictions,
            deletions: wire.deletions,
            budget_refusals: wire.refusals,
            hook_steps: wire.steps,
            hook_wait: Duration::from_millis(wire.hook_wait),
            budget_wait: Duration::from_millis(wire.budget_wait),
        },
    }
}

fn hook_to_wire(hook: &SavedHook) -> WireHook {
    let (wave, pod) = match &hook.subject {
        Subject::Node => (None, None),
        Subject::Wave(name) => (Some(name.clone()), None),
        Subject::Pod(uid) => (None, Some(uid.as_str().to_owned())),
    };
    WireHook {
        policy: hook.policy.clone(),
        phase: hook.phase.to_string(),
        wave,
        pod,
        state: STANDARD_NO_PAD.encode(&hook.state),
        version: hook.state_version,
        started: hook.started.as_millis(),
    }
}

fn hook_from_wire(wire: WireHook) -> Result<SavedHook, CheckpointFault> {
    let subject = match (wire.wave, wire.pod) {
        (Some(wave), _) => Subject::Wave(wave),
        (None, Some(uid)) => Subject::Pod(Uid::new(uid)),
        (None, None) => Subject::Node,
    };
    let state = STANDARD_NO_PAD.decode(&wire.state);
    Ok(SavedHook {
        policy: wire.policy,
        phase: hook_phase(&wire.phase)?,
        subject,
        state: state.map_err(|error| CheckpointFault::Unreadable(format!("a hook's state: {error}")))?,
        state_version: wire.version,
        started: Time::from_millis(wire.started),
    })
}

fn done_to_wire(done: &[(String, HookPhase, Subject)]) -> Vec<WireDone> {
    let mut groups: BTreeMap<(&str, HookPhase), Vec<&Subject>> = BTreeMap::new();
    for (policy, phase, subject) in done {
        groups.entry((policy, *phase)).or_default().push(subject);
    }
    let group = |((policy, phase), subjects): ((&str, HookPhase), Vec<&Subject>)| {
        let mut wire = WireDone {
            policy: policy.to_owned(),
            phase: phase.to_string(),
            ..WireDone::default()
        };
        let mut pods = Vec::new();
        for subject in subjects {
            match subject {
                Subject::Node => wire.node = true,
                Subject::Wave(name) => wire.waves.push(name.clone()),
                Subject::Pod(uid) => pods.push(uid.as_str()),
            }
        }
        (wire.pods, wire.others) = packed_uids::pack(pods);
        wire
    };
    groups.into_iter().map(group).collect()
}

fn done_from_wire(
    wire: WireDone,
    done: &mut Vec<(String, HookPhase, Subject)>,
) -> Result<(), CheckpointFault> {
    let phase = hook_phase(&wire.phase)?;
    let pods = uids_from_wire(&wire.pods, wire.others)?.map(Subject::Pod);
    let node = wire.node.then_some(Subject::Node);
    let waves = wire.waves.into_iter().map(Subject::Wave);
    done.extend(
        node.into_iter()
            .chain(waves)
            .chain(pods)
            .map(|subject| (wire.policy.clone(), phase, subject)),
    );
    Ok(())
}

fn raised_to_wire(raised: &Raised) -> WireRaised {
    let (pods, others) = packed_uids::pack(raised.pods.iter().map(|uid| uid.as_str()).collect());
    WireRaised {
        namespace: raised.deployment.namespace.clone(),
        name: raised.deployment.name.clone(),
        uid: raised.deployment.uid.as_str().to_owned(),
        drain: raised.drain.clone(),
        pods,
        others,
    }
}

fn raised_from_wire(wire: WireRaised) -> Result<Raised, CheckpointFault> {
    Ok(Raised {
        deployment: DeploymentRef {
            namespace: wire.namespace,
            name: wire.name,
            uid: Uid::new(wire.uid),
        },
        drain: wire.drain,
        pods: uids_from_wire(&wire.pods, wire.others)?.collect(),
    })
}

fn uids_from_wire(
    packed: &str,
    others: Vec<String>,
) -> Result<impl Iterator<Item = Uid> + use<>, CheckpointFault> {
    let packed = packed_uids::unpack(packed);
    let packed =
        packed.ok_or_else(|| CheckpointFault::Unreadable("the packed UIDs are broken".to_owned()))?;
    Ok(packed.into_iter().chain(others).map(Uid::new))
}

fn intent_from_name(name: &str) -> Option<Intent> {
    let mut all = [Intent::Drain, Intent::Uncordon].into_iter();
    all.find(|intent| intent.name() == name)
}

fn hook_phase(name: &str) -> Result<HookPhase, CheckpointFault> {
    HookPhase::from_name(name).ok_or(CheckpointFault::Unknown("hook phase"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests;
