//! Claims, persistent volumes and their attachments: the one reader for drains that wait for volumes, for pre-flight
//! findings, and for policies that ask.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{AttachedVolume, VolumeClaim as ClaimName};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::listing::Source;
use super::transport::escaped;
use super::wire::{Meta, Object, nullable};
use super::{Cluster, ReadError};

/// The label of a node that usually has its name as value.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Sources whose data is on the node that uses them.
const ON_THE_NODE: [&str; 2] = ["hostPath", "local"];

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

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeClaim {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `spec.volumeName`; empty: it is not bound.
    pub volume: String,
    /// `spec.storageClassName`
    pub storage_class: String,
    /// `spec.accessModes`
    pub access_modes: Vec<String>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistentVolume {
    /// `metadata.name`
    pub name: String,
    /// The field of `spec` that is its source, such as `csi`.
    pub kind: String,
    /// The claim that is bound to it.
    pub claim: Option<ClaimName>,
    /// For each alternative of its node affinity, the labels that must have exactly one value.
    pins: Vec<BTreeSet<(String, String)>>,
}

/// A VolumeAttachment of a PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeAttachment {
    /// `spec.source.persistentVolumeName`
    pub volume: String,
    /// `spec.nodeName`
    pub node: String,
}

impl PersistentVolume {
    /// Whether only this node can use its data, given that this node can.
    pub fn is_local_to(&self, node: &str) -> bool {
        if ON_THE_NODE.contains(&self.kind.as_str()) {
            return true;
        }
        // CSI drivers have their own labels for the node's name.
        let pin = |(label, value): &&(String, String)| label == HOSTNAME || value == node;
        let mut pinned = self
            .pins
            .iter()
            .map(|pins| pins.iter().find(pin).map(|(_, value)| value));
        match pinned.next() {
            Some(Some(first)) => pinned.all(|other| other == Some(first)),
            _ => false,
        }
    }
}

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

impl Cluster {
    /// Reads a PersistentVolumeClaim; `None` if it does not exist.
    pub async fn volume_claim(&self, namespace: &str, name: &str) -> Result<Option<VolumeClaim>, ReadError> {
        let path = format!("{}/{}", claims_of(namespace), escaped(name));
        let what = format!("persistentvolumeclaim {name}");
        let found = self.find::<WireVolumeClaim>(&path, &what).await?;
        Ok(found.map(WireVolumeClaim::into_claim))
    }

    /// Reads PersistentVolumeClaims by namespace and name: of one namespace, or of all (`None`).
    pub async fn volume_claims_by_place(
        &self,
        namespace: Option<&str>,
        wanted: &BTreeSet<(String, String)>,
    ) -> Result<BTreeMap<(String, String), VolumeClaim>, ReadError> {
        let path = namespace.map_or_else(|| "/api/v1/persistentvolumeclaims".to_owned(), claims_of);
        let keeps = |claim: &WireVolumeClaim| wanted.contains(&claim.metadata.place());
        let listed = self
            .read_list_where::<WireVolumeClaim>(&Source::all(path), "list persistentvolumeclaims", keeps)
            .await?;
        let placed = |claim: WireVolumeClaim| (claim.metadata.place(), claim.into_claim());
        Ok(listed.into_iter().map(placed).collect())
    }

    /// Reads the PersistentVolumeClaims of a namespace.
    pub async fn volume_claims(&self, namespace: &str) -> Result<Vec<VolumeClaim>, ReadError> {
        let what = "list persistentvolumeclaims";
        let source = Source::all(claims_of(namespace));
        self.read_reduced(&source, what, WireVolumeClaim::into_claim)
            .await
    }

    /// Reads a PersistentVolume; `None` if it does not exist.
    pub async fn persistent_volume(&self, name: &str) -> Result<Option<PersistentVolume>, ReadError> {
        let path = format!("/api/v1/persistentvolumes/{}", escaped(name));
        let what = format!("persistentvolume {name}");
        let found = self.find::<WireVolume>(&path, &what).await?;
        Ok(found.map(WireVolume::into_volume))
    }

    /// Reads all PersistentVolumes.
    pub async fn persistent_volumes(&self) -> Result<Vec<PersistentVolume>, ReadError> {
        let path = "/api/v1/persistentvolumes".to_owned();
        let what = "list persistentvolumes";
        self.read_reduced(&Source::all(path), what, WireVolume::into_volume)
            .await
    }

    /// Reads all VolumeAttachments.
    pub async fn volume_attachments(&self) -> Result<Vec<VolumeAttachment>, ReadError> {
        let what = "list volumeattachments";
        self.read_reduced(&attachments(), what, WireAttachment::into_attachment)
            .await
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

fn claims_of(namespace: &str) -> String {
    format!("/api/v1/namespaces/{}/persistentvolumeclaims", escaped(namespace))
}

impl WireVolumeClaim {
    pub(super) fn into_claim(self) -> VolumeClaim {
        VolumeClaim {
            namespace: self.metadata.namespace,
            name: self.metadata.name,
            volume: self.spec.volume_name,
            storage_class: self.spec.storage_class_name,
            access_modes: self.spec.access_modes,
        }
    }
}

impl WireVolume {
    pub(super) fn into_volume(self) -> PersistentVolume {
        let given = self.spec.others.into_iter();
        let mut fields = given.filter_map(|(field, value)| value.map(|_| field));
        let terms = self.spec.node_affinity.required.node_selector_terms;
        PersistentVolume {
            name: self.metadata.name,
            kind: fields
                .find(|field| !NO_SOURCES.contains(&field.as_str()))
                .unwrap_or_default(),
            claim: self.spec.claim_ref.map(|claim| ClaimName {
                namespace: claim.namespace,
                name: claim.name,
            }),
            pins: terms.into_iter().map(Term::pins).collect(),
        }
    }
}

impl Term {
    fn pins(self) -> BTreeSet<(String, String)> {
        let pin = |requirement: Requirement| match &requirement.values[..] {
            [only] if requirement.operator == "In" => Some((requirement.key, only.clone())),
            _ => None,
        };
        let all = self.match_expressions.into_iter().chain(self.match_fields);
        all.filter_map(pin).collect()
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
    pub(super) fn to_engine(&self, claim: Option<ClaimName>) -> AttachedVolume {
        AttachedVolume {
            attachment: self.metadata.name.clone(),
            volume: self.spec.source.persistent_volume_name.clone(),
            claim,
            attacher: self.spec.attacher.clone(),
            problem: self.status.detach_error.message.clone(),
        }
    }

    pub(super) fn into_attachment(self) -> VolumeAttachment {
        VolumeAttachment {
            volume: self.spec.source.persistent_volume_name,
            node: self.spec.node_name,
        }
    }
}

#[cfg(test)]
mod tests;
