//! Converts the node from the API's form to the engine's.

use scupper_checkpoint::CheckpointFault;
use scupper_engine::{Node, Uid};
use serde::Deserialize;

use super::wire::{self, Condition, Meta, Object, nullable};

/// The annotation with the checkpoint, which also marks the cordon as ours.
pub(super) const DRAIN_ANNOTATION: &str = "scupper.dev/drain";

/// The annotation with which `scupper cancel` cancels a drain without a LifecycleEvent: the drain's id.
pub const CANCEL_ANNOTATION: &str = "scupper.dev/cancel";

/// The fields of a node that the driver needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireNode {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    unschedulable: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    #[serde(deserialize_with = "nullable")]
    pub(super) conditions: Vec<Condition>,
}

impl Object for WireNode {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl WireNode {
    /// Converts to the engine's type, with the problem of its checkpoint: an unreadable one counts as none.
    pub(super) fn into_engine(self) -> (Node, Option<CheckpointFault>) {
        let Self {
            metadata: mut meta,
            spec,
            status,
        } = self;
        let (checkpoint, fault) = match meta.annotations.remove(DRAIN_ANNOTATION) {
            None => (None, None),
            Some(text) => match scupper_checkpoint::decode(&text) {
                Ok(checkpoint) if checkpoint.node.as_str() != meta.uid => {
                    (None, Some(CheckpointFault::OtherNode))
                }
                Ok(checkpoint) => (Some(checkpoint), None),
                Err(fault) => (None, Some(fault)),
            },
        };
        let cancel = meta.annotations.get(CANCEL_ANNOTATION).cloned();
        let node = Node {
            name: meta.name,
            uid: Uid::new(meta.uid),
            labels: meta.labels,
            annotations: wire::trimmed(meta.annotations),
            unschedulable: spec.unschedulable,
            conditions: status
                .conditions
                .into_iter()
                .map(Condition::into_engine)
                .collect(),
            checkpoint,
            cancel,
            resource_version: meta.resource_version,
        };
        (node, fault)
    }
}
