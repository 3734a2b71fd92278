//! Who owns a pod: its controller, the controller of that, and so on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scupper_engine::Controller;

use super::answers::{Answer, Answers, Asker, Facts};
use super::source::OwnerFact;

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

    fn is_beside(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.api_version == other.api_version && self.kind == other.kind
    }
}

impl Facts {
    /// The owners of a pod of the call, from its controller upwards.
    pub(crate) async fn owners(&self, asker: &Asker, uid: &str) -> Answer<Vec<OwnerFact>> {
        let pod = asker.pod(uid)?;
        let mut answers = self.answers.lock().await;
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
        let beside = answers.unread_beside(asker, &address);
        let (cluster, like) = (Arc::clone(&asker.cluster), reference.clone());
        let of_namespace = namespace.to_owned();
        if beside.len() > SINGLE_OWNERS {
            let reading = async move { cluster.owners(&of_namespace, &like).await };
            let listed = self.fetch(answers, reading).await;
            self.learn_owners(answers, beside, listed);
        } else {
            let reading = async move { cluster.owner(&of_namespace, &like).await };
            let read = self.fetch(answers, reading).await;
            self.learn_owner(answers, address.clone(), read);
        }
        answers.owners.get(&address).cloned().unwrap_or(Ok(None))
    }

    /// Remembers the listed owners that pods of the node have; the rest of the namespace does not matter.
    fn learn_owners(
        &self,
        answers: &mut Answers,
        places: BTreeSet<OwnerAddress>,
        listed: Answer<Vec<OwnerFact>>,
    ) {
        let listed = listed.map(|listed| {
            let named = |owner: OwnerFact| (owner.reference.name.clone(), owner);
            listed.into_iter().map(named).collect::<BTreeMap<_, _>>()
        });
        for address in places {
            let found = match &listed {
                Ok(listed) => Ok(listed.get(&address.name).cloned()),
                Err(error) => Err(error.clone()),
            };
            self.learn_owner(answers, address, found);
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
    /// The owners of the same kind and namespace that pods of the node are known to have, and that were not read yet.
    fn unread_beside(&self, asker: &Asker, address: &OwnerAddress) -> BTreeSet<OwnerAddress> {
        let of_pods = asker.pods.iter().filter_map(|pod| {
            let controller = pod.controller.as_ref()?;
            Some(OwnerAddress::of(&pod.id.namespace, controller))
        });
        let of_owners = self.owners.iter().filter_map(|(below, owner)| {
            let controller = owner.as_ref().ok()?.as_ref()?.controller.as_ref()?;
            Some(OwnerAddress::of(&below.namespace, controller))
        });
        let all = of_pods.chain(of_owners).chain([address.clone()]);
        all.filter(|other| other.is_beside(address) && !self.owners.contains_key(other))
            .collect()
    }
}
