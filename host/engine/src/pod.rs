//! A pod, as far as draining cares. The cluster edge makes these from API objects.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use crate::{Condition, Time};

/// An object's `metadata.uid`: the one name that is never used twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Uid(pub String);

impl Uid {
    /// The first bytes, in the order of the text; of a shorter one, followed by zeros.
    #[inline]
    fn first_bytes(&self) -> u64 {
        let bytes = self.0.as_bytes();
        match bytes.first_chunk() {
            Some(first) => u64::from_be_bytes(*first),
            None => (0..8).fold(0, |all, place| {
                all << 8 | u64::from(bytes.get(place).copied().unwrap_or(0))
            }),
        }
    }
}

/// As texts. UIDs are keys of maps that are searched all the time, and most differ in the first bytes.
impl Ord for Uid {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let first = self.first_bytes().cmp(&other.first_bytes());
        first.then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Uid {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What an eviction or deletion is addressed to: the name for the URL, the UID as its precondition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PodRef {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: Uid,
}

/// The owner reference with `controller: true`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Controller {
    /// `apiVersion`, such as `apps/v1`
    pub api_version: String,
    /// `kind`, such as `DaemonSet`
    pub kind: String,
    /// `name`
    pub name: String,
    /// `uid`
    pub uid: Uid,
    /// The API server said that no such object exists (looked up for DaemonSets only).
    pub missing: bool,
}

/// `status.phase`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PodPhase {
    /// Accepted, not all containers started.
    Pending,
    /// Bound to a node and started.
    Running,
    /// All containers ended with success.
    Succeeded,
    /// All containers ended, one at least with failure.
    Failed,
    /// The node does not answer.
    #[default]
    Unknown,
}

/// A deletion under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Deletion {
    /// `metadata.deletionTimestamp`: when the grace is over by the API server's clock. No upper bound: a kubelet
    /// that restarts begins the grace again.
    pub at: Time,
    /// `metadata.deletionGracePeriodSeconds`
    pub grace_seconds: u64,
}

/// A pod on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pod {
    /// Namespace, name and UID.
    pub id: PodRef,
    /// `spec.nodeName`
    pub node: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// The controller, when there is one.
    pub controller: Option<Controller>,
    /// `status.phase`
    pub phase: PodPhase,
    /// The condition `Ready` is `True`.
    pub ready: bool,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
    /// `spec.priority`, 0 when absent
    pub priority: i32,
    /// `spec.priorityClassName`, empty when absent
    pub priority_class: String,
    /// `spec.terminationGracePeriodSeconds`
    pub grace_seconds: u64,
    /// `metadata.creationTimestamp`
    pub created: Time,
    /// Set once the pod's deletion was requested.
    pub deletion: Option<Deletion>,
    /// `metadata.finalizers`
    pub finalizers: Vec<String>,
    /// It has an `emptyDir` volume.
    pub empty_dir: bool,
    /// `spec.hostNetwork`
    pub host_network: bool,
    /// `spec.hostname`, empty when absent
    pub hostname: String,
    /// The toleration that lets it onto a cordoned node, for display; `None`: it has none.
    pub cordon_toleration: Option<String>,
    /// The names of the PersistentVolumeClaims that it uses, in its namespace.
    pub volume_claims: Vec<String>,
    /// Directories of the node that it uses as `hostPath` volumes, without those of the system.
    pub host_paths: Vec<String>,
}

/// The annotation by which a kubelet marks the API's copy of a static pod.
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

impl Pod {
    /// Made by the kubelet from a file on the node: the API's copy is a reflection, and evicting it does nothing.
    pub fn is_mirror(&self) -> bool {
        self.annotations.contains_key(MIRROR_ANNOTATION)
    }

    /// All its containers have ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Its controller is a DaemonSet, of whatever API group: each of them puts its pods back on the same node.
    pub fn is_daemon(&self) -> bool {
        self.controller
            .as_ref()
            .is_some_and(|owner| owner.kind == "DaemonSet")
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PodRef {
    /// `namespace/name`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
