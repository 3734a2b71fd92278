//! Who owns a pod: its controller, the controller of that, and so on.

use scupper_api::facts::{FactKind, Owner};

use super::cache::{Answer, Facts};
use super::caller::FactCaller;
use crate::wit::bindings::scupper::drain::facts;
use crate::wit::to_wit_owned::entries;

/// Levels above a pod. ReplicaSet and Deployment are two; an operator's kind may stand above.
const LEVELS: usize = 5;

impl Facts {
    /// The owners of a pod of the call, from its controller upwards.
    pub(crate) async fn owners(&self, caller: &FactCaller, uid: &str) -> Answer<Vec<facts::Owner>> {
        let pod = caller.pod(uid)?;
        let mut reader = self.reader(caller).await;
        let (mut owners, mut next) = (Vec::new(), pod.controller.clone());
        while let Some(reference) = next.take().filter(|_| owners.len() < LEVELS) {
            let namespace = &pod.id.namespace;
            let place = (namespace.clone(), reference.name.clone());
            let found = reader.one::<Owner>(FactKind::owner(&reference), place).await?;
            // Another object has the name now.
            let found = found.filter(|owner| owner.reference.uid == reference.uid);
            let owner = found.unwrap_or_else(|| Owner::bare(namespace, reference));
            next.clone_from(&owner.controller);
            owners.push(to_wit(owner));
        }
        Ok(owners)
    }
}

fn to_wit(owner: Owner) -> facts::Owner {
    let reference = owner.reference;
    facts::Owner {
        api_version: reference.api_version,
        kind: reference.kind,
        name: reference.name,
        uid: reference.uid.0,
        labels: entries(owner.labels),
        annotations: entries(owner.annotations),
        replicas: owner.replicas,
        ready_replicas: owner.ready_replicas,
        strategy: owner.strategy,
    }
}
