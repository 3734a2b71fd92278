//! The volumes that are attached to a node.
//!
//! The API server cannot select attachments by their node, so those of all nodes are listed and watched, and only while a
//! drain waits for them. Which claim a volume belongs to is in its PersistentVolume.

use std::collections::BTreeMap;

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use scupper_engine::{Answer, AttachedVolume, Event, VolumeClaim};
use serde::Deserialize;

use super::Cluster;
use super::listing::{self, Source};
use super::tasks;
use super::transport::escaped;
use super::watch::{Change, watch};
use super::wire::{Meta, Object, nullable};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireAttachment {
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

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireVolume {
    #[serde(deserialize_with = "nullable")]
    spec: VolumeSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    claim_ref: Option<ClaimRef>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimRef {
    namespace: String,
    name: String,
}

impl Object for WireAttachment {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The claims of PersistentVolumes that were read. A claim does not change while its volume is attached.
type Claims = BTreeMap<String, Option<VolumeClaim>>;

impl Cluster {
    /// Lists the volumes that are attached to the node, consistently instead of from a cache.
    pub(super) async fn list_volumes(&self, node: &str) -> Answer {
        let listed = listing::list::<WireAttachment>(self.client(), &attachments(), self.options()).await;
        let (mut listed, _) = match listed {
            Ok(listed) => listed,
            Err(fault) => return tasks::answer(fault),
        };
        listed.retain(|attachment| attachment.spec.node_name == node);
        Answer::Volumes(self.with_claims(&listed, &mut Claims::new()).await)
    }

    /// Streams all volumes that are attached to the node, first as they are, then at each change. Never ends.
    pub fn volume_changes(&self, node: &str) -> impl Stream<Item = Event> + Send + 'static + use<> {
        let follower = Follower {
            cluster: self.clone(),
            node: node.to_owned(),
            changes: watch::<WireAttachment>(self, attachments()).boxed(),
            attached: BTreeMap::new(),
            claims: Claims::new(),
        };
        stream::unfold(follower, |mut follower| async {
            let event = follower.next().await?;
            Some((event, follower))
        })
    }

    /// If a claim cannot be read, the next change reads it again: only volumes of pods that stay depend on it.
    async fn with_claims(&self, attachments: &[WireAttachment], claims: &mut Claims) -> Vec<AttachedVolume> {
        let mut volumes = Vec::new();
        for attachment in attachments {
            let volume = &attachment.spec.source.persistent_volume_name;
            if !volume.is_empty()
                && !claims.contains_key(volume)
                && let Some(claim) = self.claim_of(volume).await
            {
                claims.insert(volume.clone(), claim);
            }
            let claim = claims.get(volume).cloned().flatten();
            volumes.push(attachment.to_engine(claim));
        }
        volumes.sort_unstable();
        volumes
    }

    /// The claim of a PersistentVolume; `None`: it could not be read.
    async fn claim_of(&self, volume: &str) -> Option<Option<VolumeClaim>> {
        let path = format!("/api/v1/persistentvolumes/{}", escaped(volume));
        let what = format!("persistentvolume {volume}");
        match self.find::<WireVolume>(&path, &what).await {
            Ok(found) => Some(
                found
                    .and_then(|volume| volume.spec.claim_ref)
                    .map(|claim| VolumeClaim {
                        namespace: claim.namespace,
                        name: claim.name,
                    }),
            ),
            Err(error) => {
                tracing::warn!(volume, %error, "the claim of an attached volume is not known");
                None
            }
        }
    }
}

impl WireAttachment {
    fn to_engine(&self, claim: Option<VolumeClaim>) -> AttachedVolume {
        AttachedVolume {
            attachment: self.metadata.name.clone(),
            volume: self.spec.source.persistent_volume_name.clone(),
            claim,
            attacher: self.spec.attacher.clone(),
            problem: self.status.detach_error.message.clone(),
        }
    }
}

/// Keeps the attachments of one node.
struct Follower {
    cluster: Cluster,
    node: String,
    changes: BoxStream<'static, Change<WireAttachment>>,
    attached: BTreeMap<String, WireAttachment>,
    claims: Claims,
}

impl Follower {
    async fn next(&mut self) -> Option<Event> {
        loop {
            let change = self.changes.next().await?;
            if self.apply(change) {
                let attached: Vec<_> = self.attached.values().cloned().collect();
                let volumes = self.cluster.with_claims(&attached, &mut self.claims).await;
                return Some(Event::Volumes(volumes));
            }
        }
    }

    /// Whether the change concerns the node.
    fn apply(&mut self, change: Change<WireAttachment>) -> bool {
        let is_ours = |attachment: &WireAttachment| attachment.spec.node_name == self.node;
        match change {
            Change::Listed(all) => {
                let ours = all.into_iter().filter(is_ours);
                self.attached = ours.map(|it| (it.metadata.name.clone(), it)).collect();
                true
            }
            Change::Applied(attachment) if is_ours(&attachment) => {
                self.attached.insert(attachment.metadata.name.clone(), attachment);
                true
            }
            Change::Applied(_) => false,
            Change::Deleted(attachment) => self.attached.remove(&attachment.metadata.name).is_some(),
        }
    }
}

fn attachments() -> Source {
    Source {
        path: "/apis/storage.k8s.io/v1/volumeattachments".to_owned(),
        selector: None,
        optional: false,
    }
}
