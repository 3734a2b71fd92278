//! A pod, as far as draining cares. The cluster edge makes these from API objects.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::{Condition, Time};

/// An object's `metadata.uid`: the one name that is never used twice.
///
/// UIDs are keys of maps that are searched all the time, and most differ in their first bytes. So those stand beside the
/// text, which all copies share.
#[derive(Clone, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "String", into = "String"))]
pub struct Uid {
    first_bytes: u64,
    text: Arc<str>,
}

impl Uid {
    /// An object's UID.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let first_bytes = first_bytes(text.as_bytes());
        Self { first_bytes, text }
    }

    pub(crate) const fn first_bytes(&self) -> u64 {
        self.first_bytes
    }

    /// As the API server gives it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// In the order of the text; of a shorter one, followed by zeros.
fn first_bytes(text: &[u8]) -> u64 {
    (0..8).fold(0, |all, place| {
        all << 8 | u64::from(text.get(place).copied().unwrap_or(0))
    })
}

impl PartialEq for Uid {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.first_bytes == other.first_bytes
            && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}

/// As texts.
impl Ord for Uid {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match self.first_bytes.cmp(&other.first_bytes) {
            Ordering::Equal if Arc::ptr_eq(&self.text, &other.text) => Ordering::Equal,
            Ordering::Equal => self.text.cmp(&other.text),
            first => first,
        }
    }
}

impl PartialOrd for Uid {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Uid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Uid").field(&self.text).finish()
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<Uid> for String {
    fn from(uid: Uid) -> Self {
        Self::from(uid.as_str())
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "BTreeMap::is_empty"))]
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
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub priority_class: String,
    /// `spec.terminationGracePeriodSeconds`
    pub grace_seconds: u64,
    /// `metadata.creationTimestamp`
    pub created: Time,
    /// Set once the pod's deletion was requested.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub deletion: Option<Deletion>,
    /// `metadata.finalizers`
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub finalizers: Vec<String>,
    /// It has an `emptyDir` volume.
    pub empty_dir: bool,
    /// `spec.hostNetwork`
    pub host_network: bool,
    /// `spec.hostname`, empty when absent
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub hostname: String,
    /// The toleration that lets it onto a cordoned node, for display; `None`: it has none.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub cordon_toleration: Option<String>,
    /// The names of the PersistentVolumeClaims that it uses, in its namespace.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub volume_claims: Vec<String>,
    /// Directories of the node that it uses as `hostPath` volumes, without those of the system.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub host_paths: Vec<String>,
}

/// The annotation by which a kubelet marks the API's copy of a static pod.
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// The finalizer of a Job's pods, which the Job's controller removes once they have ended.
const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

impl Pod {
    /// The finalizers that keep the pod after its end until they are removed. A Job removes its own.
    pub fn lasting_finalizers(&self) -> impl Iterator<Item = &str> {
        let finalizers = self.finalizers.iter().map(String::as_str);
        finalizers.filter(|name| *name != JOB_TRACKING)
    }

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
        f.write_str(&self.text)
    }
}

impl fmt::Display for PodRef {
    /// `namespace/name`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
