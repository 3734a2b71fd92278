//! Additional facts about pods that are not evicted, beyond those that a drain watches.

use std::collections::BTreeMap;

use scupper_api::{BudgetDetails, Workload};
use scupper_engine::Uid;
use serde_json::{Value, json};

/// Facts about the blocked pods of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusDetails {
    /// The workloads of pods, by the UID of the pod's controller.
    pub workloads: BTreeMap<Uid, Workload>,
    /// Facts about budgets, by namespace and name.
    pub budgets: BTreeMap<(String, String), BudgetDetails>,
    /// Objects that could not be read, and why.
    pub unread: Vec<String>,
}

/// A text for people: `Deployment cart, 2 of 3 ready`.
pub(super) fn workload_text(workload: &Workload) -> String {
    let Workload { kind, name, ready } = workload;
    match ready {
        Some((ready, wanted)) => format!("{kind} {name}, {ready} of {wanted} ready"),
        None => format!("{kind} {name}"),
    }
}

pub(super) fn workload_json(workload: &Workload) -> Value {
    let (ready, wanted) = workload.ready.unzip();
    json!({ "kind": workload.kind, "name": workload.name, "ready": ready, "wanted": wanted })
}
