//! The volumes of a pod: its spec, the claims behind them, and where they are attached.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scupper_engine::{Time, Uid};

use super::answers::{ALL_FETCHES, Answer, Answers, AskedPod, Asker, Facts};
use super::bulk::{NextRead, next_read};
use super::source::{Place, PodVolumeFact, VolumeAttachments, VolumeClaimFact, VolumeFact};

/// Claims in one namespace that are read one by one. If the node's pods have more, they come in one list.
const SINGLE_CLAIMS: usize = 3;

/// Volumes that are read one by one. If the node's pods have more, all come in one list.
const SINGLE_VOLUMES: usize = 5;

/// Volumes whose data is on the node, by the kind of their source in a pod.
const NODE_LOCAL: [&str; 3] = ["csi", "emptyDir", "hostPath"];

/// Kinds of PersistentVolumes that are never attached.
const NOT_ATTACHED: [&str; 4] = ["", "hostPath", "local", "nfs"];

/// A volume of a pod.
#[derive(Clone, Debug)]
pub(crate) struct PodVolume {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) node_local: bool,
    pub(crate) claim: Option<ClaimedVolume>,
}

/// The PersistentVolumeClaim of a volume, and the PersistentVolume behind it.
#[derive(Clone, Debug)]
pub(crate) struct ClaimedVolume {
    pub(crate) name: String,
    pub(crate) fact: VolumeClaimFact,
    /// The kind of the PersistentVolume's source; empty: there is none.
    pub(crate) kind: String,
    pub(crate) attached_to: Vec<String>,
}

/// The answers about claims, volumes and attachments.
#[derive(Debug, Default)]
pub(super) struct VolumeAnswers {
    claims: BTreeMap<Place, Answer<Option<VolumeClaimFact>>>,
    volumes: BTreeMap<String, Answer<Option<VolumeFact>>>,
    all_volumes: Option<Answer<VolumesByName>>,
    attachments: Option<Answer<Arc<VolumeAttachments>>>,
    pods: BTreeMap<Uid, Answer<Vec<PodVolume>>>,
}

/// What rarely changes, with the time when it was read.
#[derive(Debug, Default)]
pub(super) struct KeptVolumes {
    claims: BTreeMap<Place, (Time, VolumeClaimFact)>,
    volumes: BTreeMap<String, (Time, VolumeFact)>,
}

/// All PersistentVolumes.
type VolumesByName = Arc<BTreeMap<String, VolumeFact>>;

impl Facts {
    /// The volumes of a pod of the call.
    pub(crate) async fn volumes(&self, asker: &Asker, uid: &str) -> Answer<Vec<PodVolume>> {
        let pod = asker.pod(uid)?;
        if self.is_blank {
            return Ok(Vec::new());
        }
        let mut answers = self.answers(asker).await;
        if let Some(known) = answers.volumes.pods.get(&pod.id.uid) {
            return known.clone();
        }
        let answer = self.read_volumes(&mut answers, asker, pod).await;
        let answer = answer.and_then(|volumes| {
            answers.admit_bytes(volumes.iter().map(PodVolume::bytes).sum())?;
            Ok(volumes)
        });
        answers.volumes.pods.insert(pod.id.uid.clone(), answer.clone());
        answer
    }

    async fn read_volumes(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        pod: &AskedPod,
    ) -> Answer<Vec<PodVolume>> {
        let spec = self.pod_spec(answers, asker, pod).await?;
        let mut volumes = Vec::new();
        for volume in spec.map(|spec| spec.volumes).unwrap_or_default() {
            let PodVolumeFact { name, kind, claim } = volume;
            let mut node_local = NODE_LOCAL.contains(&kind.as_str());
            let claim = match claim {
                Some(claim) => {
                    let place = (pod.id.namespace.clone(), claim);
                    let (claim, is_local) = self.claimed(answers, asker, place, &pod.node).await?;
                    node_local |= is_local;
                    Some(claim)
                }
                None => None,
            };
            volumes.push(PodVolume {
                name,
                kind,
                node_local,
                claim,
            });
        }
        Ok(volumes)
    }

    /// The claim, and whether only this node can use its volume.
    async fn claimed(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        place: Place,
        node: &str,
    ) -> Answer<(ClaimedVolume, bool)> {
        let name = place.1.clone();
        let fact = self
            .volume_claim(answers, asker, place)
            .await?
            .unwrap_or_default();
        let mut claim = ClaimedVolume {
            name,
            fact,
            kind: String::new(),
            attached_to: Vec::new(),
        };
        if claim.fact.volume.is_empty() {
            return Ok((claim, false));
        }
        let volume = self.volume(answers, asker, &claim.fact.volume, node).await?;
        let volume = volume.unwrap_or_default();
        if !NOT_ATTACHED.contains(&volume.kind.as_str()) {
            let attachments = self.attachments(answers, asker).await?;
            let nodes = attachments.get(&claim.fact.volume);
            claim.attached_to = nodes.cloned().unwrap_or_default();
        }
        claim.kind = volume.kind;
        Ok((claim, volume.node_local))
    }

    async fn volume_claim(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        place: Place,
    ) -> Answer<Option<VolumeClaimFact>> {
        if let Some(known) = answers.volumes.claims.get(&place) {
            return known.clone();
        }
        if let Some(kept) = self.kept(|kept| kept.volumes.claims.get(&place).cloned()) {
            answers.volumes.claims.insert(place, Ok(Some(kept.clone())));
            return Ok(Some(kept));
        }
        loop {
            let unread = answers.unread_volume_claims(asker, &place);
            let cluster = Arc::clone(&asker.cluster);
            match next_read(answers, &place, unread, SINGLE_CLAIMS) {
                NextRead::List(wanted) => {
                    let places = wanted.places.clone();
                    let reading = async move { cluster.volume_claims(&wanted).await };
                    let Some(listed) = self.fetch_within(ALL_FETCHES, answers, reading).await.transpose()
                    else {
                        answers.one_namespace_at_a_time = true;
                        continue;
                    };
                    for place in places {
                        let found = listed.as_ref().map(|listed| listed.get(&place).cloned());
                        self.learn_volume_claim(answers, place, found.map_err(Clone::clone));
                    }
                }
                NextRead::One => {
                    let (namespace, name) = place.clone();
                    let reading = async move { cluster.volume_claim(&namespace, &name).await };
                    let read = self.fetch(answers, reading).await;
                    self.learn_volume_claim(answers, place.clone(), read);
                }
            }
            return answers.volumes.claims.get(&place).cloned().unwrap_or(Ok(None));
        }
    }

    /// A claim that is not bound may be bound soon, so it is not kept.
    fn learn_volume_claim(
        &self,
        answers: &mut Answers,
        place: Place,
        answer: Answer<Option<VolumeClaimFact>>,
    ) {
        if let Ok(Some(claim)) = &answer
            && !claim.volume.is_empty()
        {
            self.keep(&Ok(claim.clone()), |kept, claim| {
                kept.volumes.claims.insert(place.clone(), claim);
            });
        }
        answers.volumes.claims.insert(place, answer);
    }

    async fn volume(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        name: &str,
        node: &str,
    ) -> Answer<Option<VolumeFact>> {
        if let Some(known) = answers.volumes.volumes.get(name) {
            return known.clone();
        }
        let answer = if let Some(kept) = self.kept(|kept| kept.volumes.volumes.get(name).cloned()) {
            Ok(Some(kept))
        } else if answers.wants_all_volumes(name) {
            let all = self.all_volumes(answers, asker, node).await;
            all.map(|all| all.get(name).cloned())
        } else {
            let (cluster, wanted) = (Arc::clone(&asker.cluster), name.to_owned());
            let node = node.to_owned();
            let reading = async move { cluster.persistent_volume(&wanted, &node).await };
            let read = self.fetch(answers, reading).await;
            if let Ok(Some(volume)) = &read {
                self.keep(&Ok(volume.clone()), |kept, volume| {
                    kept.volumes.volumes.insert(name.to_owned(), volume);
                });
            }
            read
        };
        answers.volumes.volumes.insert(name.to_owned(), answer.clone());
        answer
    }

    async fn all_volumes(&self, answers: &mut Answers, asker: &Asker, node: &str) -> Answer<VolumesByName> {
        if let Some(known) = &answers.volumes.all_volumes {
            return known.clone();
        }
        let (cluster, node) = (Arc::clone(&asker.cluster), node.to_owned());
        let reading = async move { cluster.persistent_volumes(&node).await };
        let read = self.fetch(answers, reading).await.map(Arc::new);
        self.keep(&read, |kept, (now, all)| {
            let all = all.iter();
            let dated = all.map(|(name, volume)| (name.clone(), (now, volume.clone())));
            kept.volumes.volumes = dated.collect();
        });
        answers.volumes.all_volumes = Some(read.clone());
        read
    }

    /// Attachments change while a drain runs, so they are not kept.
    async fn attachments(&self, answers: &mut Answers, asker: &Asker) -> Answer<Arc<VolumeAttachments>> {
        if let Some(known) = &answers.volumes.attachments {
            return known.clone();
        }
        let cluster = Arc::clone(&asker.cluster);
        let reading = async move { cluster.volume_attachments().await };
        let read = self.fetch(answers, reading).await.map(Arc::new);
        answers.volumes.attachments = Some(read.clone());
        read
    }
}

impl Answers {
    /// The claims of the node's pods that were not read yet.
    fn unread_volume_claims(&self, asker: &Asker, place: &Place) -> BTreeSet<Place> {
        let of_pods = self.specs_of(asker).flat_map(|(namespace, spec)| {
            let claims = spec.volumes.iter().filter_map(|volume| volume.claim.clone());
            claims.map(|claim| (namespace.to_owned(), claim))
        });
        of_pods
            .chain([place.clone()])
            .filter(|other| !self.volumes.claims.contains_key(other))
            .collect()
    }

    /// Whether the node's pods have so many volumes that one list is cheaper.
    fn wants_all_volumes(&self, name: &str) -> bool {
        let claims = self.volumes.claims.values().flatten().flatten();
        let bound = claims.map(|claim| claim.volume.as_str()).chain([name]);
        let bound: BTreeSet<&str> = bound.filter(|volume| !volume.is_empty()).collect();
        bound.len() > SINGLE_VOLUMES
    }
}

impl PodVolume {
    /// The total size of its texts in bytes.
    fn bytes(&self) -> usize {
        let claim = self.claim.iter().flat_map(|claim| {
            let VolumeClaimFact {
                volume,
                storage_class,
                access_modes,
            } = &claim.fact;
            let texts = [&claim.name, &claim.kind, volume, storage_class].into_iter();
            texts.chain(access_modes).chain(&claim.attached_to)
        });
        let texts = [&self.name, &self.kind].into_iter().chain(claim);
        texts.map(String::len).sum()
    }
}
