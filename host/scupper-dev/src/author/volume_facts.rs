//! What scenarios and snapshots say about volumes of pods, for policies that ask for them.

use std::collections::BTreeMap;

use scupper_policy::{PodVolumeFact, VolumeAttachments, VolumeClaimFact, VolumeFact};
use serde::Deserialize;

use super::values::text_or;

/// The kind of a volume that has a claim.
const CLAIM: &str = "persistentVolumeClaim";

/// Claims, volumes, and where these are attached.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeFacts {
    /// By namespace and name.
    pub(super) claims: BTreeMap<(String, String), VolumeClaimFact>,
    pub(super) volumes: BTreeMap<String, VolumeFact>,
    pub(super) attachments: VolumeAttachments,
}

/// A volume of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct VolumeFields {
    /// The kind of its source; default: `persistentVolumeClaim`.
    kind: String,
    /// The name of its claim; default: the volume's.
    claim: Option<String>,
    /// The PersistentVolume; default: `pv-of-CLAIM`; empty: not bound.
    volume: Option<String>,
    /// The kind of the PersistentVolume; default: `csi`.
    volume_kind: Option<String>,
    /// Only this node can use the PersistentVolume.
    node_local: bool,
    storage_class: String,
    access_modes: Vec<String>,
    attached_to: Vec<String>,
}

text_or! {
    /// A volume: only the kind of its source, or all its fields.
    #[derive(Clone)]
    VolumeForm, VolumeFields, |kind| VolumeFields { kind, ..VolumeFields::default() }
}

/// The volumes of a pod, by name.
pub(super) type Volumes = BTreeMap<String, VolumeForm>;

impl VolumeFacts {
    /// The volumes as in a pod's spec. Also adds their claims.
    pub(super) fn of_pod(&mut self, namespace: &str, volumes: &Volumes) -> Vec<PodVolumeFact> {
        let volume = |(name, VolumeForm(fields)): (&String, &VolumeForm)| {
            let kind = Some(&fields.kind).filter(|kind| !kind.is_empty());
            let kind = kind.cloned().unwrap_or_else(|| CLAIM.to_owned());
            let claim = matches!(kind.as_str(), CLAIM | "ephemeral").then(|| {
                let claim = fields.claim.as_ref().unwrap_or(name).clone();
                self.claim(namespace, &claim, fields);
                claim
            });
            PodVolumeFact {
                name: name.clone(),
                kind,
                claim,
            }
        };
        volumes.iter().map(volume).collect()
    }

    fn claim(&mut self, namespace: &str, name: &str, fields: &VolumeFields) {
        let volume = fields.volume.clone();
        let volume = volume.unwrap_or_else(|| format!("pv-of-{name}"));
        if !volume.is_empty() {
            let kind = fields.volume_kind.clone();
            let fact = VolumeFact {
                kind: kind.unwrap_or_else(|| "csi".to_owned()),
                node_local: fields.node_local,
            };
            self.volumes.insert(volume.clone(), fact);
            self.attachments
                .insert(volume.clone(), fields.attached_to.clone());
        }
        let claim = VolumeClaimFact {
            volume,
            storage_class: fields.storage_class.clone(),
            access_modes: fields.access_modes.clone(),
        };
        self.claims.insert((namespace.to_owned(), name.to_owned()), claim);
    }
}
