//! What is looked up about pods that are not evicted, beyond what a drain watches.

use std::collections::BTreeMap;

use scupper_engine::{Time, Uid};
use serde_json::{Value, json};

/// Facts about the pods of one node that something blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusDetails {
    /// What manages pods, by the UID of their controller.
    pub workloads: BTreeMap<Uid, WorkloadDetails>,
    /// Budgets, by namespace and name.
    pub budgets: BTreeMap<(String, String), BudgetDetails>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

/// What manages the pods of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadDetails {
    /// Its kind, such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How many of its pods are ready, and how many it wants; `None`: not known.
    pub ready: Option<(u32, u32)>,
}

/// What a budget says beyond its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetDetails {
    /// What made it.
    pub owner: Option<String>,
    /// Since when it has allowed no eviction.
    pub since: Option<Time>,
    /// Pods whose eviction it has granted and that it has not seen go, and when that was.
    pub granted: BTreeMap<String, Time>,
    /// Its pods that are not ready.
    pub unready: Vec<UnreadyPodDetails>,
}

/// A pod that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadyPodDetails {
    /// Its name.
    pub name: String,
    /// Its node; empty: none yet.
    pub node: String,
    /// Since when.
    pub since: Option<Time>,
    /// Why, in the words of the API server and the kubelet.
    pub why: String,
}

impl WorkloadDetails {
    /// For people: `Deployment cart, 2 of 3 ready`.
    pub(super) fn words(&self) -> String {
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
