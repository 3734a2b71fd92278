//! The mark in `disabled_reason` that identifies services disabled by a drain. Two clusters that share one Nova may have nodes
//! of the same name, so only the cluster makes it ours.

use scupper_sdk::{Call, Node, cluster};

use crate::settings::Settings;
use crate::step_error::StepError;

/// Nova's limit for a reason.
const CHARACTERS: usize = 255;

const NO_CLUSTER: &str = "it is unknown which cluster this is, and another one may have a node of this name; allow to get the \
                          namespace kube-system, or set `cluster`";
/// The marks of all drains begin like this.
const OURS: &str = "scupper: node=";
/// A longer name leaves no room for what identifies the drain.
const NAME: usize = 120;

/// `scupper: node=<name> cluster=<cluster> drain=<id>`
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    head: String,
    whole: String,
}

impl Mark {
    pub(crate) fn new(node: &str, cluster: &str, drain: &str) -> Self {
        let node: String = node.chars().take(NAME).collect();
        let head = format!("{OURS}{node} cluster={cluster} drain=");
        Self {
            whole: format!("{head}{drain}").chars().take(CHARACTERS).collect(),
            head,
        }
    }

    /// Of this drain. Asks which cluster this is, unless the configuration says it.
    pub(crate) fn of(call: &Call, settings: &Settings) -> Result<Self, StepError> {
        Self::of_drain(&call.node, settings, &call.drain.id)
    }

    /// Of any drain of the node: its text names none.
    pub(crate) fn of_any(node: &Node, settings: &Settings) -> Result<Self, StepError> {
        Self::of_drain(node, settings, "")
    }

    fn of_drain(node: &Node, settings: &Settings, drain: &str) -> Result<Self, StepError> {
        let cluster = match &settings.cluster {
            Some(name) => name.clone(),
            None => cluster::uid().map_err(|error| StepError::retry(format!("{NO_CLUSTER}: {error}")))?,
        };
        Ok(Self::new(&node.name, &cluster, drain))
    }

    pub(crate) fn text(&self) -> &str {
        &self.whole
    }

    /// Whether a drain of this node wrote it: this one or an earlier one.
    pub(crate) fn is_of_node(&self, reason: &str) -> bool {
        reason.starts_with(&self.head)
    }

    /// Whether this drain wrote it.
    pub(crate) fn is_of_drain(&self, reason: &str) -> bool {
        reason == self.whole
    }
}

/// Whether a drain by Scupper wrote it, of any node in any cluster.
pub(crate) fn is_of_scupper(reason: &str) -> bool {
    reason.starts_with(OURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_operators_and_of_the_hypervisor_driver_are_not_ours() {
        let mark = Mark::new("node-1", "c1", "d1");
        for reason in [
            "",
            "AUTO: Connection to libvirt lost: 1",
            "kernel update",
            "scupper: node=node-10 cluster=c1 drain=d1",
            "scupper: node=node-1 cluster=c2 drain=d1",
            "scupper: node=node-1 drain=d1",
            "x scupper: node=node-1 cluster=c1 drain=d1",
        ] {
            assert!(!mark.is_of_node(reason) && !mark.is_of_drain(reason), "{reason}");
        }
    }

    #[test]
    fn the_mark_of_another_drain_of_the_node_is_ours() {
        let other = Mark::new("node-1", "c1", "d2");
        let mark = Mark::new("node-1", "c1", "d1");
        assert!(mark.is_of_node(other.text()) && !mark.is_of_drain(other.text()));
        assert!(mark.is_of_drain(mark.text()));
    }

    #[test]
    fn a_mark_with_a_very_long_node_name_still_names_the_cluster_and_the_drain() {
        let node = "n".repeat(253);
        let mark = Mark::new(&node, "c1", "d1");
        assert!(mark.text().chars().count() <= CHARACTERS);
        assert!(mark.is_of_node(mark.text()) && mark.is_of_drain(mark.text()));
        for other in [Mark::new(&node, "c2", "d1"), Mark::new(&node, "c1", "d2")] {
            assert!(!mark.is_of_drain(other.text()), "{}", other.text());
        }
    }
}
