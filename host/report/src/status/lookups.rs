//! Additional facts about pods that are not evicted, beyond those that a drain watches.

use std::collections::BTreeMap;

use scupper_engine::{Time, Uid};
use serde_json::{Value, json};

/// Facts about the blocked pods of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusDetails {
    /// The workloads of pods, by the UID of the pod's controller.
    pub workloads: BTreeMap<Uid, WorkloadDetails>,
    /// Facts about budgets, by namespace and name.
    pub budgets: BTreeMap<(String, String), BudgetDetails>,
    /// Objects that could not be read, and why.
    pub unread: Vec<String>,
}

/// The workload that manages a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadDetails {
    /// Its kind, such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The number of ready pods, and the desired number; `None`: unknown.
    pub ready: Option<(u32, u32)>,
}

/// Facts about a budget beyond its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetDetails {
    /// The object that created it.
    pub owner: Option<String>,
    /// When it last became unable to allow evictions.
    pub since: Option<Time>,
    /// Pods whose eviction it has granted and that have not disappeared, with the time of the eviction.
    pub granted: BTreeMap<String, Time>,
    /// Its unready pods.
    pub unready: Vec<UnreadyPodDetails>,
}

/// An unready pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadyPodDetails {
    /// Its name.
    pub name: String,
    /// Its node; empty if it has none yet.
    pub node: String,
    /// Since when it has been unready.
    pub since: Option<Time>,
    /// The cause, as the API server and the kubelet state it.
    pub why: String,
}

impl WorkloadDetails {
    /// A text for people: `Deployment cart, 2 of 3 ready`.
    pub(super) fn text(&self) -> String {
        let Self { kind, name, ready } = self;
        match ready {
            Some((ready, wanted)) => format!("{kind} {name}, {ready} of {wanted} ready"),
            None => format!("{kind} {name}"),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let (ready, wanted) = self.ready.unzip();
        json!({ "kind": self.kind, "name": self.name, "ready": ready, "wanted": wanted })
    }
}
