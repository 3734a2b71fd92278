//! The volumes that are attached to a node.
//!
//! The API server cannot select attachments by their node, so those of all nodes are listed and watched, and only while a
//! drain waits for them. Which claim a volume belongs to is in its PersistentVolume.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use scupper_api::Change;
use scupper_api::facts::{FactKind, PersistentVolume};
use scupper_engine::{Answer, AttachedVolume, Event, VolumeClaim};
use tokio::time::timeout;

use super::Cluster;
use super::listing;
use super::sieve::Sieve;
use super::storage::{WireAttachment, attachments};
use super::tasks;
use super::watch::watch_through;

/// The claims of PersistentVolumes that were read. A claim does not change while its volume is attached.
type Claims = BTreeMap<String, Option<VolumeClaim>>;

/// The pause before claims that could not be read are read again. It doubles with each try.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Keeps the attachments of a node.
struct NodeAttachments(String);

impl Sieve<WireAttachment> for NodeAttachments {
    fn page_size(&self) -> Option<u32> {
        None
    }

    fn keeps(&mut self, attachment: &mut WireAttachment) -> bool {
        attachment.is_of(&self.0)
    }
}

impl Cluster {
    /// Lists the volumes that are attached to the node, consistently instead of from a cache.
    pub(super) async fn list_volumes(&self, node: &str) -> Answer {
        let mut listed = Vec::new();
        let each = |it: WireAttachment| listed.extend(Some(it.reduced()).filter(|it| it.is_of(node)));
        let source = attachments();
        if let Err(fault) = listing::for_each(self.client(), &source, self.options(), each).await {
            return tasks::answer(fault);
        }
        Answer::Volumes(self.with_claims(&listed, &mut Claims::new()).await)
    }

    /// Streams all volumes that are attached to the node, first as they are, then at each change. Never ends.
    pub fn volume_changes(&self, node: &str) -> impl Stream<Item = Event> + Send + 'static + use<> {
        let sieve = NodeAttachments(node.to_owned());
        let follower = Follower {
            cluster: self.clone(),
            changes: watch_through(self, attachments(), sieve, WireAttachment::reduced).boxed(),
            attached: BTreeMap::new(),
            claims: Claims::new(),
            tries: 0,
        };
        stream::unfold(follower, |mut follower| async {
            let event = follower.next().await?;
            Some((event, follower))
        })
    }

    /// If a claim cannot be read, the follower reads it again: only volumes of pods that stay depend on it.
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
        let place = (String::new(), volume.to_owned());
        let found = self.ask_one::<PersistentVolume>(FactKind::PersistentVolume, place);
        match found.await {
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
    changes: BoxStream<'static, Change<WireAttachment>>,
    attached: BTreeMap<String, WireAttachment>,
    claims: Claims,
    /// How often in a row claims could not be read.
    tries: u32,
}

impl Follower {
    async fn next(&mut self) -> Option<Event> {
        loop {
            let concerns_us = match timeout(self.pause(), self.changes.next()).await {
                Ok(change) => self.apply(change?),
                Err(_unread) => true,
            };
            if concerns_us {
                let attached: Vec<_> = self.attached.values().cloned().collect();
                let volumes = self.cluster.with_claims(&attached, &mut self.claims).await;
                return Some(Event::Volumes(volumes));
            }
        }
    }

    /// How long to wait for a change: while claims are missing, only until they are read again.
    fn pause(&mut self) -> Duration {
        let is_read = |volume: &str| volume.is_empty() || self.claims.contains_key(volume);
        if self.attached.values().all(|it| is_read(it.volume())) {
            self.tries = 0;
            return Duration::MAX;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << self.tries.min(16));
        self.tries = self.tries.saturating_add(1);
        pause.min(LONGEST_PAUSE)
    }

    /// Whether the change concerns the node.
    fn apply(&mut self, change: Change<WireAttachment>) -> bool {
        match change {
            Change::Listed(all) => {
                self.attached = all.into_iter().map(|it| (it.name().to_owned(), it)).collect();
                true
            }
            Change::Applied(attachment) => {
                self.attached.insert(attachment.name().to_owned(), attachment);
                true
            }
            Change::Deleted(attachment) => self.attached.remove(attachment.name()).is_some(),
        }
    }
}
