//! The call that asks: its drain, the pods that it shows to the policy, and whom to ask.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scupper_engine::{Budget, Controller, Pod, PodRef};

use super::cache::{Answer, AskError};
use super::device_annotations::devices;
use super::resources::DeviceOfPod;
use crate::ClusterAccess;

/// The drain and the pods that a call is about, and whom to ask.
pub(crate) struct FactCaller {
    pub(crate) cluster: Arc<dyn ClusterAccess>,
    pub(crate) trigger: String,
    pub(crate) name: String,
    pub(crate) id: String,
    /// The pods shown to the policy.
    pub(crate) pods: Vec<CallerPod>,
}

/// What the answers about a pod depend on.
#[derive(Clone, Debug)]
pub(crate) struct CallerPod {
    pub(crate) id: PodRef,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) controller: Option<Controller>,
    pub(crate) node: String,
    /// Those that its annotations name.
    pub(super) devices: Vec<DeviceOfPod>,
}

impl FactCaller {
    /// The namespaces of the pods.
    pub(super) fn namespaces(&self) -> BTreeSet<&str> {
        self.pods.iter().map(|pod| pod.id.namespace.as_str()).collect()
    }

    /// A pod that the host has shown to the policy.
    pub(super) fn pod(&self, uid: &str) -> Answer<&CallerPod> {
        let pod = self.pods.iter().find(|pod| pod.id.uid.as_str() == uid);
        pod.ok_or_else(|| AskError::NotFound("no pod of this call has the UID".to_owned()))
    }
}

impl CallerPod {
    pub(crate) fn of(pod: &Pod) -> Self {
        Self {
            id: pod.id.clone(),
            labels: pod.labels.clone(),
            controller: pod.controller.clone(),
            node: pod.node.clone(),
            devices: devices(&pod.annotations),
        }
    }

    /// Whether the budget covers it.
    pub(super) fn is_of(&self, budget: &Budget) -> bool {
        budget.namespace == self.id.namespace && budget.selector.matches(&self.labels)
    }
}
