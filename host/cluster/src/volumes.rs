//! The volumes that are attached to a node.
//!
//! The API server cannot select attachments by their node, so those of all nodes are listed and watched, and only while a
//! drain waits for them. Which claim a volume belongs to is in its PersistentVolume.

use std::collections::BTreeMap;

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use scupper_engine::{Answer, AttachedVolume, Event, VolumeClaim};

use super::Cluster;
use super::listing;
use super::storage::{WireAttachment, attachments};
use super::tasks;
use super::watch::{Change, watch};

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
        listed.retain(|attachment| attachment.is_of(node));
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
            let volume = attachment.volume();
            if !volume.is_empty()
                && !claims.contains_key(volume)
                && let Some(claim) = self.claim_of(volume).await
            {
                claims.insert(volume.to_owned(), claim);
            }
            let claim = claims.get(volume).cloned().flatten();
            volumes.push(attachment.to_engine(claim));
        }
        volumes.sort_unstable();
        volumes
    }

    /// The claim of a PersistentVolume; `None`: it could not be read.
    async fn claim_of(&self, volume: &str) -> Option<Option<VolumeClaim>> {
        match self.persistent_volume(volume).await {
            Ok(found) => Some(found.and_then(|volume| volume.claim)),
            Err(error) => {
                tracing::warn!(volume, %error, "the claim of an attached volume is not known");
                None
            }
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
        let is_ours = |attachment: &WireAttachment| attachment.is_of(&self.node);
        match change {
            Change::Listed(all) => {
                let ours = all.into_iter().filter(is_ours);
                self.attached = ours.map(|it| (it.name().to_owned(), it)).collect();
                true
            }
            Change::Applied(attachment) if is_ours(&attachment) => {
                self.attached.insert(attachment.name().to_owned(), attachment);
                true
            }
            Change::Applied(_) => false,
            Change::Deleted(attachment) => self.attached.remove(attachment.name()).is_some(),
        }
    }
}
