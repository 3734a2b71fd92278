//! Who owns a pod: its controller, the controller of that, and so on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scupper_engine::Controller;

use super::answers::{ALL_FETCHES, Answer, Answers, Asker, Facts};
use super::bulk::{NextRead, next_read};
use super::source::{OwnerFact, Place};

/// Levels above a pod. ReplicaSet and Deployment are two; an operator's kind may stand above.
const LEVELS: usize = 5;

/// Owners of one kind in one namespace that are read one by one. If the node's pods have more, they come in one list.
const SINGLE_OWNERS: usize = 2;

/// Owners by their address.
pub(super) type KnownOwners<T> = BTreeMap<OwnerAddress, T>;

/// Where the API has an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnerAddress {
    namespace: String,
    api_version: String,
    kind: String,
    name: String,
}

impl OwnerAddress {
    fn of(namespace: &str, reference: &Controller) -> Self {
        Self {
            namespace: namespace.to_owned(),
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            name: reference.name.clone(),
        }
    }

    /// Of the same kind, elsewhere.
    fn at(&self, (namespace, name): Place) -> Self {
        Self {
            namespace,
            name,
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.api_version == other.api_version && self.kind == other.kind
    }

    fn place(&self) -> Place {
        (self.namespace.clone(), self.name.clone())
    }
}

impl Facts {
    /// The owners of a pod of the call, from its controller upwards.
    pub(crate) async fn owners(&self, asker: &Asker, uid: &str) -> Answer<Vec<OwnerFact>> {
        let pod = asker.pod(uid)?;
        let mut answers = self.answers(asker).await;
        let (mut owners, mut next) = (Vec::new(), pod.controller.clone());
        while let Some(reference) = next.take().filter(|_| owners.len() < LEVELS) {
            let found = self
                .owner(&mut answers, asker, &pod.id.namespace, &reference)
                .await?;
            // Another object has the name now.
            let found = found.filter(|owner| owner.reference.uid == reference.uid);
            let owner = found.unwrap_or_else(|| OwnerFact::bare(reference));
            next.clone_from(&owner.controller);
            owners.push(owner);
        }
        Ok(owners)
    }

    async fn owner(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        namespace: &str,
        reference: &Controller,
    ) -> Answer<Option<OwnerFact>> {
        let address = OwnerAddress::of(namespace, reference);
        if let Some(known) = answers.owners.get(&address) {
            return known.clone();
        }
        if let Some(kept) = self.kept(|kept| kept.owners.get(&address).cloned()) {
            answers.owners.insert(address, Ok(Some(kept.clone())));
            return Ok(Some(kept));
        }
        if self.is_blank {
            return Ok(None);
        }
        loop {
            let unread = answers.unread_owners(asker, &address);
            let place = address.place();
            let (cluster, like) = (Arc::clone(&asker.cluster), reference.clone());
            match next_read(answers, &place, unread, SINGLE_OWNERS) {
                NextRead::List(wanted) => {
                    let places = wanted.places.clone();
                    let reading = async move { cluster.owners(&wanted, &like).await };
                    match self.fetch_within(ALL_FETCHES, answers, reading).await.transpose() {
                        None => {
                            answers.one_namespace_at_a_time = true;
                            continue;
                        }
                        Some(listed) => self.learn_owners(answers, &address, places, &listed),
                    }
                }
                NextRead::One => {
                    let reading = async move { cluster.owner(&place.0, &like).await };
                    let read = self.fetch(answers, reading).await;
                    self.learn_owner(answers, address.clone(), read);
                }
            }
            return answers.owners.get(&address).cloned().unwrap_or(Ok(None));
        }
    }

    /// Remembers the listed owners that pods of the node have.
    fn learn_owners(
        &self,
        answers: &mut Answers,
        like: &OwnerAddress,
        places: BTreeSet<Place>,
        listed: &Answer<BTreeMap<Place, OwnerFact>>,
    ) {
        for place in places {
            let found = match listed {
                Ok(listed) => Ok(listed.get(&place).cloned()),
                Err(error) => Err(error.clone()),
            };
            self.learn_owner(answers, like.at(place), found);
        }
    }

    fn learn_owner(&self, answers: &mut Answers, address: OwnerAddress, answer: Answer<Option<OwnerFact>>) {
        let answer = match answer {
            Ok(Some(owner)) => answers.admit(Ok(owner), |owner| &owner.marks).map(Some),
            other => other,
        };
        if let Ok(Some(owner)) = &answer {
            self.keep(&Ok(owner.clone()), |kept, owner| {
                kept.owners.insert(address.clone(), owner);
            });
        }
        answers.owners.insert(address, answer);
    }
}

impl Answers {
    /// The owners of the same kind that pods of the node are known to have, and that were not read yet.
    fn unread_owners(&self, asker: &Asker, address: &OwnerAddress) -> BTreeSet<Place> {
        let of_pods = asker.pods.iter().filter_map(|pod| {
            let controller = pod.controller.as_ref()?;
            Some(OwnerAddress::of(&pod.id.namespace, controller))
        });
        let of_owners = self.owners.iter().filter_map(|(below, owner)| {
            let controller = owner.as_ref().ok()?.as_ref()?.controller.as_ref()?;
            Some(OwnerAddress::of(&below.namespace, controller))
        });
        let all = of_pods.chain(of_owners).chain([address.clone()]);
        all.filter(|other| other.is_like(address) && !self.owners.contains_key(other))
            .map(|other| (other.namespace, other.name))
            .collect()
    }
}
