//! Who owns a pod: its controller, the controller of that, and so on.

use scupper_api::facts::{DisruptionAction, FactKind, JobFailures, Owner};
use scupper_engine::Controller;

use super::cache::{Answer, FactReader, Facts};
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
            let found = owner(&mut reader, namespace, &reference).await?;
            let owner = found.unwrap_or_else(|| Owner::bare(namespace, reference));
            next.clone_from(&owner.controller);
            owners.push(to_wit(owner));
        }
        Ok(owners)
    }

    /// The Job that controls a pod of the call.
    pub(crate) async fn job(&self, caller: &FactCaller, uid: &str) -> Answer<Option<facts::Job>> {
        let pod = caller.pod(uid)?;
        let Some(reference) = pod.controller.as_ref().filter(|it| it.kind == "Job") else {
            return Ok(None);
        };
        let mut reader = self.reader(caller).await;
        let found = owner(&mut reader, &pod.id.namespace, reference).await?;
        Ok(found.and_then(|owner| Some(job_to_wit(owner.reference.name, owner.failures?))))
    }
}

/// An owner, if it still exists.
async fn owner(
    reader: &mut FactReader<'_>,
    namespace: &str,
    reference: &Controller,
) -> Answer<Option<Owner>> {
    let place = (namespace.to_owned(), reference.name.clone());
    let found = reader.one::<Owner>(FactKind::owner(reference), place).await?;
    // Another object may have the name now.
    Ok(found.filter(|owner| owner.reference.uid == reference.uid))
}

fn job_to_wit(name: String, failures: JobFailures) -> facts::Job {
    facts::Job {
        name,
        failed: failures.failed,
        backoff_limit: failures.limit,
        backoff_limit_per_index: failures.limit_per_index,
        on_disruption: match failures.on_disruption {
            DisruptionAction::Ignore => facts::DisruptionAction::Ignore,
            DisruptionAction::Count => facts::DisruptionAction::Count,
            DisruptionAction::FailIndex => facts::DisruptionAction::FailIndex,
            DisruptionAction::FailJob => facts::DisruptionAction::FailJob,
        },
    }
}

fn to_wit(owner: Owner) -> facts::Owner {
    let reference = owner.reference;
    facts::Owner {
        api_version: reference.api_version,
        kind: reference.kind,
        name: reference.name,
        uid: reference.uid.as_str().to_owned(),
        labels: entries(owner.labels),
        annotations: entries(owner.annotations),
        replicas: owner.replicas,
        ready_replicas: owner.ready_replicas,
        strategy: owner.strategy,
    }
}
