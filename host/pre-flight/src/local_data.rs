//! Findings about data that does not follow a pod: `emptyDir`, `hostPath`, and claims whose volume is on the node only.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Certainty, Concern, Finding, Input, likely};
use scupper_engine::{LocalData, Pod, PodRef, Settings, VolumeClaim, named};

/// Texts name at most this many directories or volumes.
const NAMED: usize = 3;

/// Which claims only the node of the drain can use, as far as that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalVolumes {
    /// Their PersistentVolumes.
    pub claims: BTreeMap<VolumeClaim, String>,
    /// Why the claims are not known; `None`: they are.
    pub unread: Option<String>,
}

impl LocalVolumes {
    /// None, and none that could not be read.
    pub const NONE: &'static Self = &Self {
        claims: BTreeMap::new(),
        unread: None,
    };
}

impl Finding {
    /// Whether a drain with these settings refuses the finding's pods.
    pub fn refuses(&self, settings: &Settings) -> bool {
        match self.concern {
            // Also refuses pods that may leave data behind: the operator asked for safety.
            Concern::LocalVolume | Concern::UnknownVolume => settings.local_data == LocalData::Refuse,
            _ => settings.refuse_certain && self.certainty == Certainty::Certain,
        }
    }
}

impl Input<'_> {
    /// The claims of the pods that are to leave and whose data may be missed.
    pub fn claims_of_leaving(&self) -> BTreeSet<VolumeClaim> {
        let pods = self.leaving();
        let lasting = pods.iter().filter(|pod| !pod.is_finished());
        lasting.flat_map(|pod| claims(pod)).collect()
    }
}

pub(super) fn examine(input: &Input<'_>, findings: &mut Vec<Finding>) {
    let mut leaving = input.leaving();
    leaving.retain(|pod| !pod.is_finished());
    empty_dirs(&leaving, findings);
    host_paths(&leaving, findings);
    local_volumes(input, &leaving, findings);
    unknown_volumes(input, &leaving, findings);
}

fn claims(pod: &Pod) -> impl Iterator<Item = VolumeClaim> {
    pod.volume_claims.iter().map(|name| VolumeClaim {
        namespace: pod.id.namespace.clone(),
        name: name.clone(),
    })
}

fn empty_dirs(leaving: &[&Pod], findings: &mut Vec<Finding>) {
    let lost = leaving.iter().filter(|pod| pod.empty_dir);
    let pods: Vec<_> = lost.map(|pod| pod.id.clone()).collect();
    if !pods.is_empty() {
        let reason = String::from("data in emptyDir volumes is lost with the pod");
        findings.push(likely(Concern::LocalData, pods, reason, ""));
    }
}

fn host_paths(leaving: &[&Pod], findings: &mut Vec<Finding>) {
    let mut held: BTreeMap<&[String], Vec<PodRef>> = BTreeMap::new();
    for pod in leaving.iter().filter(|pod| !pod.host_paths.is_empty()) {
        held.entry(&pod.host_paths).or_default().push(pod.id.clone());
    }
    findings.extend(held.into_iter().map(|(paths, pods)| {
        let named = named(paths, NAMED);
        let reason = format!("data in hostPath volumes stays on this node ({named})");
        likely(Concern::LocalData, pods, reason, "")
    }));
}

/// One finding for each pod, because each has volumes of its own.
fn local_volumes(input: &Input<'_>, leaving: &[&Pod], findings: &mut Vec<Finding>) {
    for pod in leaving {
        let local = claims(pod).filter_map(|claim| {
            let volume = input.volumes.claims.get(&claim)?;
            Some(format!("{volume} of claim {}", claim.name))
        });
        let local: Vec<_> = local.collect();
        if local.is_empty() {
            continue;
        }
        let reason = format!(
            "a replacement of the pod cannot start on another node with its data: only this node can use volume {}",
            named(&local, NAMED)
        );
        let change = "copy the data elsewhere and delete the claim";
        let pods = Vec::from([pod.id.clone()]);
        findings.push(likely(Concern::LocalVolume, pods, reason, change));
    }
}

fn unknown_volumes(input: &Input<'_>, leaving: &[&Pod], findings: &mut Vec<Finding>) {
    let Some(problem) = &input.volumes.unread else {
        return;
    };
    let claiming = leaving.iter().filter(|pod| !pod.volume_claims.is_empty());
    let pods: Vec<_> = claiming.map(|pod| pod.id.clone()).collect();
    if !pods.is_empty() {
        let reason = format!("whether only this node can use the pod's volumes is not known: {problem}");
        let change = "see that the right to read persistentvolumeclaims and persistentvolumes is there";
        findings.push(likely(Concern::UnknownVolume, pods, reason, change));
    }
}
