//! Claims, persistent volumes and their attachments: the one reader for drains that wait for volumes, for pre-flight
//! findings, and for policies that ask.

use std::collections::{BTreeMap, BTreeSet};

use scupper_api::facts::{FactKind, FactObject, PersistentVolume, PersistentVolumeClaim, VolumeAttachment};
use scupper_engine::{AttachedVolume, VolumeClaim};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::facts::WireFact;
use super::listing::Source;
use super::wire::{Meta, Object, nullable};

/// The fields of `spec` of a persistent volume that are not its source.
const NO_SOURCES: [&str; 8] = [
    "accessModes",
    "capacity",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireVolumeClaim {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: ClaimSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSpec {
    #[serde(deserialize_with = "nullable")]
    volume_name: String,
    #[serde(deserialize_with = "nullable")]
    storage_class_name: String,
    #[serde(deserialize_with = "nullable")]
    access_modes: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireVolume {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: VolumeSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    #[serde(deserialize_with = "nullable")]
    node_affinity: Affinity,
    claim_ref: Option<ClaimRef>,
    #[serde(flatten)]
    others: BTreeMap<String, Option<IgnoredAny>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimRef {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Affinity {
    #[serde(deserialize_with = "nullable")]
    required: Terms,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terms {
    #[serde(deserialize_with = "nullable")]
    node_selector_terms: Vec<Term>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    #[serde(deserialize_with = "nullable")]
    match_expressions: Vec<Requirement>,
    #[serde(deserialize_with = "nullable")]
    match_fields: Vec<Requirement>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: String,
    operator: String,
    #[serde(deserialize_with = "nullable")]
    values: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireAttachment {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: AttachmentSpec,
    #[serde(deserialize_with = "nullable")]
    status: AttachmentStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AttachmentSpec {
    attacher: String,
    node_name: String,
    #[serde(deserialize_with = "nullable")]
    source: AttachmentSource,
}

/// A volume without a PersistentVolume has an inline spec here, and no name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AttachmentSource {
    #[serde(deserialize_with = "nullable")]
    persistent_volume_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AttachmentStatus {
    #[serde(deserialize_with = "nullable")]
    detach_error: DetachError,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct DetachError {
    #[serde(deserialize_with = "nullable")]
    message: String,
}

impl Object for WireAttachment {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The attachments of all nodes.
pub(super) fn attachments() -> Source {
    Source {
        path: "/apis/storage.k8s.io/v1/volumeattachments".to_owned(),
        selector: None,
        optional: false,
    }
}

impl WireFact for WireVolumeClaim {
    fn into_fact(self, _kind: &FactKind) -> FactObject {
        let claim = PersistentVolumeClaim {
            namespace: self.metadata.namespace,
            name: self.metadata.name,
            volume: self.spec.volume_name,
            storage_class: self.spec.storage_class_name,
            access_modes: self.spec.access_modes,
        };
        claim.into()
    }
}

impl WireFact for WireAttachment {
    fn into_fact(self, _kind: &FactKind) -> FactObject {
        let attachment = VolumeAttachment {
            volume: self.spec.source.persistent_volume_name,
            node: self.spec.node_name,
        };
        attachment.into()
    }
}

impl WireFact for WireVolume {
    fn into_fact(self, _kind: &FactKind) -> FactObject {
        let given = self.spec.others.into_iter();
        let mut fields = given.filter_map(|(field, value)| value.map(|_| field));
        let terms = self.spec.node_affinity.required.node_selector_terms;
        let volume = PersistentVolume {
            name: self.metadata.name,
            kind: fields
                .find(|field| !NO_SOURCES.contains(&field.as_str()))
                .unwrap_or_default(),
            claim: self.spec.claim_ref.map(|claim| VolumeClaim {
                namespace: claim.namespace,
                name: claim.name,
            }),
            pins: terms.into_iter().map(Term::pins).collect(),
        };
        volume.into()
    }
}

impl Term {
    fn pins(self) -> Vec<(String, String)> {
        let pin = |requirement: Requirement| match &requirement.values[..] {
            [only] if requirement.operator == "In" => Some((requirement.key, only.clone())),
            _ => None,
        };
        let all = self.match_expressions.into_iter().chain(self.match_fields);
        let pins: BTreeSet<_> = all.filter_map(pin).collect();
        pins.into_iter().collect()
    }
}

impl WireAttachment {
    /// Without what drains do not need.
    pub(super) fn reduced(mut self) -> Self {
        self.metadata = self.metadata.identity();
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    pub(super) fn is_of(&self, node: &str) -> bool {
        self.spec.node_name == node
    }

    /// The name of its PersistentVolume; empty: it has none.
    pub(super) fn volume(&self) -> &str {
        &self.spec.source.persistent_volume_name
    }

    /// With the claim of its volume.
    pub(super) fn to_engine(&self, claim: Option<VolumeClaim>) -> AttachedVolume {
        AttachedVolume {
            attachment: self.metadata.name.clone(),
            volume: self.spec.source.persistent_volume_name.clone(),
            claim,
            attacher: self.spec.attacher.clone(),
            problem: self.status.detach_error.message.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
