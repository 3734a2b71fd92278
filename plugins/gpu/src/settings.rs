//! The configuration.

use scupper_sdk::{
    Problem, config,
    facts::{DeviceSource, DrainRequest},
};

pub(crate) const KEYS: [&str; 5] = ["unmapped", "actions", "entities", "gpus", "trusted-annotations"];

/// The only action of NVSentinel that leaves the other pods of the node running.
const ACTIONS: &str = "COMPONENT_RESET";
const ENTITIES: &str = "GPU_UUID, GPU";
/// NVIDIA's device plugin and DRA driver, and HAMi.
const GPUS: &str = "nvidia.com/gpu, nvidia.com/pgpu, nvidia.com/mig-*, gpu.nvidia.com, NVIDIA";

/// See `config.schema.json`.
pub(crate) struct Settings {
    pub(crate) unmapped: Unmapped,
    actions: Vec<String>,
    entities: Vec<String>,
    pub(crate) gpus: Vec<String>,
    trusted_annotations: Vec<String>,
}

/// What to do if it is unknown which GPUs a pod has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmapped {
    Refuse,
    WholeNode,
    Keep,
}

const UNMAPPED: [(&str, Unmapped); 3] = [
    ("refuse", Unmapped::Refuse),
    ("whole-node", Unmapped::WholeNode),
    ("keep", Unmapped::Keep),
];

impl Settings {
    pub(crate) fn read() -> Result<Self, Problem> {
        Ok(Self {
            unmapped: config::choice("unmapped", Unmapped::Refuse, &UNMAPPED)?,
            actions: config::list("actions", ACTIONS),
            entities: config::list("entities", ENTITIES),
            gpus: config::list("gpus", GPUS),
            trusted_annotations: config::list("trusted-annotations", ""),
        })
    }

    /// Whether the owner of a pod cannot write where a device is named.
    pub(crate) fn trusts(&self, source: &DeviceSource) -> bool {
        match source {
            DeviceSource::ResourceClaim(_) | DeviceSource::ExtendedResourceClaim(_) => true,
            DeviceSource::Annotation(key) => config::matches_any(&self.trusted_annotations, key),
        }
    }

    /// The GPUs that a request names; none: it is for the whole node.
    pub(crate) fn named_by(&self, request: &DrainRequest) -> Vec<String> {
        let is_partial = config::matches_any(&self.actions, &request.recommended_action);
        let types = self.entities.iter().filter(|_| is_partial);
        let mut named = types.map(|entity| request.entities(entity).map(str::to_owned).collect());
        named.find(|ids: &Vec<_>| !ids.is_empty()).unwrap_or_default()
    }
}
