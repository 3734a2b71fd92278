//! What a person learns about a pod that is not evicted: its workload, and the budget that blocks it.

use std::collections::BTreeMap;

use scupper_engine::Time;

/// The workload that manages a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its kind, such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The number of ready pods, and the number wanted; `None`: it counts none, or they are not known.
    pub ready: Option<(u32, u32)>,
}

/// What a PodDisruptionBudget tells beyond its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetDetails {
    /// Its origin: its owner, its Helm release, or the tool that manages it.
    pub owner: Option<String>,
    /// Since when it has allowed no eviction.
    pub since: Option<Time>,
    /// Pods whose eviction it has granted and that have not disappeared, with the time of the grant.
    pub granted: BTreeMap<String, Time>,
    /// Its pods that are not ready.
    pub unready: Vec<UnreadyPod>,
}

/// A pod that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadyPod {
    /// Its name.
    pub name: String,
    /// Its node; empty if it has none yet.
    pub node: String,
    /// Since when it has not been ready.
    pub since: Option<Time>,
    /// The reason, as the API server or the kubelet states it.
    pub why: String,
}
