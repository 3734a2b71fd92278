//! The node that is drained.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Checkpoint, Time, Uid};

/// A condition of a node or a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Condition {
    /// `type`
    pub kind: String,
    /// `status`: `True`, `False` or `Unknown`
    pub status: String,
    /// `reason`
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub reason: String,
    /// `message`
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub message: String,
    /// `lastTransitionTime`
    pub since: Option<Time>,
}

/// The node, as far as draining cares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Node {
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: Uid,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`, without our own checkpoint
    pub annotations: BTreeMap<String, String>,
    /// `spec.unschedulable`: the node is cordoned
    pub unschedulable: bool,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
    /// What the node's own annotation of ours says: whether the cordon is ours, and where the drain was.
    pub checkpoint: Option<Checkpoint>,
    /// The id of the drain that a user cancels by an annotation. It belongs to one drain only, so one that stays by
    /// accident stops no other.
    pub cancel: Option<String>,
    /// `metadata.resourceVersion`, for writes that must not overwrite those of others
    pub resource_version: String,
}

impl Node {
    /// The reason of the condition `Drained=True` that we write.
    pub const DRAINED_BY_US: &str = "DrainCompleted";

    /// The annotation that names the drain that tainted the node as out of service.
    pub const OUT_OF_SERVICE: &str = "scupper.dev/out-of-service";

    /// A drain of ours has tainted the node as out of service.
    pub fn is_out_of_service(&self) -> bool {
        self.annotations.contains_key(Self::OUT_OF_SERVICE)
    }

    /// Conditions of a node whose machine may be off: the node controller writes `Unknown` for a kubelet that is silent.
    /// Only a kubelet writes `True` and `False`; without the condition `Ready` nothing is known.
    pub fn may_be_off(conditions: &[Condition]) -> bool {
        let ready = conditions.iter().find(|condition| condition.kind == "Ready");
        ready.is_some_and(|ready| ready.status == "Unknown")
    }

    /// A drain of ours has come to its end here, and the node has been cordoned since: its mark says so where the cordon
    /// is ours, and its condition where it is not.
    pub fn is_drained_by_us(&self) -> bool {
        let is_ours =
            |it: &Condition| it.kind == "Drained" && it.status == "True" && it.reason == Self::DRAINED_BY_US;
        let marked = self.checkpoint.as_ref().is_some_and(|mark| mark.drained);
        self.unschedulable && (marked || self.conditions.iter().any(is_ours))
    }
}
