//! What a pod requests, and its devices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scupper_engine::{Time, Uid};

use super::answers::{ALL_FETCHES, Answer, Answers, AskedPod, Asker, Facts};
use super::bulk::{NextRead, next_read};
use super::source::{ClaimFact, DeviceAttributes, DeviceId, Place};

/// ResourceClaims in one namespace that are read one by one. If the node's pods have more, they come in one list.
const SINGLE_CLAIMS: usize = 2;

/// What a pod requests and has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcesFact {
    pub(crate) requests: BTreeMap<String, u64>,
    pub(crate) devices: Vec<DeviceFact>,
    pub(crate) unallocated: Vec<String>,
}

/// A device of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceFact {
    pub(crate) source: DeviceSource,
    pub(crate) id: DeviceId,
    pub(crate) admin_access: bool,
    pub(crate) attributes: BTreeMap<String, String>,
}

/// Where it says that a pod has a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeviceSource {
    /// The ResourceClaim of this name.
    Claim(String),
    /// The annotation with this key.
    Annotation(String),
}

/// The answers about claims and devices.
#[derive(Debug, Default)]
pub(super) struct ResourceAnswers {
    claims: BTreeMap<Place, Answer<Option<ClaimFact>>>,
    attributes: Option<Answer<DeviceAttributes>>,
    pods: BTreeMap<Uid, Answer<ResourcesFact>>,
}

/// What seldom changes, with the time when it was read.
#[derive(Debug, Default)]
pub(super) struct KeptResources {
    claims: BTreeMap<Place, (Time, ClaimFact)>,
    attributes: Option<(Time, DeviceAttributes)>,
}

impl Facts {
    /// What a pod of the call requests, and its devices.
    pub(crate) async fn resources(&self, asker: &Asker, uid: &str) -> Answer<ResourcesFact> {
        let pod = asker.pod(uid)?;
        let mut answers = self.answers(asker).await;
        if let Some(known) = answers.resources.pods.get(&pod.id.uid) {
            return known.clone();
        }
        let answer = self.read_resources(&mut answers, asker, pod).await;
        let answer = answer.and_then(|fact| answers.admit_bytes(fact.bytes()).map(|()| fact));
        answers.resources.pods.insert(pod.id.uid.clone(), answer.clone());
        answer
    }

    async fn read_resources(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        pod: &AskedPod,
    ) -> Answer<ResourcesFact> {
        let mut fact = ResourcesFact {
            devices: pod.devices.clone(),
            ..ResourcesFact::default()
        };
        if self.is_blank {
            return Ok(fact);
        }
        let Some(spec) = self.pod_spec(answers, asker, pod).await? else {
            return Ok(fact);
        };
        fact.requests = spec.requests;
        let mut claimed = Vec::new();
        for claim in spec.claims {
            let found = match &claim.claim {
                Some(name) => {
                    let place = (pod.id.namespace.clone(), name.clone());
                    self.claim(answers, asker, place).await?
                }
                None => None,
            };
            let name = claim.claim.unwrap_or(claim.name);
            match found.and_then(|found| found.devices) {
                Some(devices) => claimed.extend(devices.into_iter().map(|device| (name.clone(), device))),
                None => fact.unallocated.push(name),
            }
        }
        if !claimed.is_empty() {
            let attributes = self.attributes(answers, asker, &pod.node).await?;
            let device = |(name, (id, admin_access)): (String, (DeviceId, bool))| DeviceFact {
                source: DeviceSource::Claim(name),
                attributes: attributes.get(&id).cloned().unwrap_or_default(),
                id,
                admin_access,
            };
            fact.devices.extend(claimed.into_iter().map(device));
        }
        Ok(fact)
    }

    async fn claim(&self, answers: &mut Answers, asker: &Asker, place: Place) -> Answer<Option<ClaimFact>> {
        if let Some(known) = answers.resources.claims.get(&place) {
            return known.clone();
        }
        if let Some(kept) = self.kept(|kept| kept.resources.claims.get(&place).cloned()) {
            answers.resources.claims.insert(place, Ok(Some(kept.clone())));
            return Ok(Some(kept));
        }
        loop {
            let unread = answers.unread_claims(asker, &place);
            let cluster = Arc::clone(&asker.cluster);
            match next_read(answers, &place, unread, SINGLE_CLAIMS) {
                NextRead::List(wanted) => {
                    let places = wanted.places.clone();
                    let reading = async move { cluster.resource_claims(&wanted).await };
                    let Some(listed) = self.fetch_within(ALL_FETCHES, answers, reading).await.transpose()
                    else {
                        answers.one_namespace_at_a_time = true;
                        continue;
                    };
                    for place in places {
                        let found = listed.as_ref().map(|listed| listed.get(&place).cloned());
                        self.learn_claim(answers, place, found.map_err(Clone::clone));
                    }
                }
                NextRead::One => {
                    let (namespace, name) = place.clone();
                    let reading = async move { cluster.resource_claim(&namespace, &name).await };
                    let read = self.fetch(answers, reading).await;
                    self.learn_claim(answers, place.clone(), read);
                }
            }
            return answers.resources.claims.get(&place).cloned().unwrap_or(Ok(None));
        }
    }

    /// What is not allocated may be allocated soon, so it is not kept.
    fn learn_claim(&self, answers: &mut Answers, place: Place, answer: Answer<Option<ClaimFact>>) {
        if let Ok(Some(claim)) = &answer
            && claim.devices.is_some()
        {
            self.keep(&Ok(claim.clone()), |kept, claim| {
                kept.resources.claims.insert(place.clone(), claim);
            });
        }
        answers.resources.claims.insert(place, answer);
    }

    async fn attributes(&self, answers: &mut Answers, asker: &Asker, node: &str) -> Answer<DeviceAttributes> {
        if let Some(known) = &answers.resources.attributes {
            return known.clone();
        }
        let answer = match self.kept(|kept| kept.resources.attributes.clone()) {
            Some(kept) => Ok(kept),
            None => {
                let (cluster, node) = (Arc::clone(&asker.cluster), node.to_owned());
                let reading = async move { cluster.device_attributes(&node).await };
                let read = self.fetch(answers, reading).await;
                self.keep(&read, |kept, read| kept.resources.attributes = Some(read));
                read
            }
        };
        answers.resources.attributes = Some(answer.clone());
        answer
    }
}

impl Answers {
    /// The claims of the node's pods that were not read yet.
    fn unread_claims(&self, asker: &Asker, place: &Place) -> BTreeSet<Place> {
        let of_pods = self.specs_of(asker).flat_map(|(namespace, spec)| {
            let claims = spec.claims.iter().filter_map(|claim| claim.claim.clone());
            claims.map(|claim| (namespace.to_owned(), claim))
        });
        of_pods
            .chain([place.clone()])
            .filter(|other| !self.resources.claims.contains_key(other))
            .collect()
    }
}

impl ResourcesFact {
    /// The bytes of its texts.
    fn bytes(&self) -> usize {
        let requests = self.requests.keys().map(String::len);
        let devices = self.devices.iter().map(DeviceFact::bytes);
        requests
            .chain(devices)
            .chain(self.unallocated.iter().map(String::len))
            .sum()
    }
}

impl DeviceFact {
    fn bytes(&self) -> usize {
        let (DeviceSource::Claim(source) | DeviceSource::Annotation(source)) = &self.source;
        let DeviceId { driver, pool, name } = &self.id;
        let texts = [source, driver, pool, name].into_iter();
        let attributes = self.attributes.iter().flat_map(|(key, value)| [key, value]);
        texts.chain(attributes).map(String::len).sum()
    }
}
