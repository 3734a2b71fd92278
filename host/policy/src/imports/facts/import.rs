//! The host's side of the import `facts`: grants, and the answers as WIT has them.

use std::sync::Arc;

use scupper_common::drain_request::{DrainRequestFields, Entity};
use scupper_common::text::one_line;
use scupper_engine::UnhealthyPods;
use scupper_policy_spec::{Capability, Fact};

use super::answers::{Answer, AskError, Asker, Facts};
use super::resources::{DeviceFact, DeviceSource, ResourcesFact};
use super::source::{BudgetFact, Marks, OwnerFact};
use crate::imports::store_data::StoreData;
use crate::wit::bindings::scupper::drain::facts::{self, Error};
use crate::wit::to_wit_owned::entries;

/// Bytes of a name that the API server accepts as that of a namespace.
const NAME_BYTES: usize = 63;

/// Bytes of a wrong name that an error shows.
const SHOWN_BYTES: usize = 100;

/// Whom a call may ask, and the answers so far.
pub(crate) struct FactScope {
    pub(crate) facts: Arc<Facts>,
    pub(crate) asker: Asker,
    /// The call belongs to a drain.
    pub(crate) in_drain: bool,
}

impl StoreData {
    /// The scope, if the policy was granted this fact and the function may ask.
    fn may_ask(&self, fact: Fact) -> Result<&FactScope, Error> {
        let granted = self
            .context
            .grants
            .iter()
            .any(|grant| grant.capability == Capability::Facts && grant.target == fact.as_str());
        if !granted {
            let target = fact.as_str();
            return Err(Error::NotGranted(format!(
                "facts:{target} was not wanted and granted"
            )));
        }
        let closed = match &self.facts {
            Some(scope) if scope.in_drain || fact == Fact::Namespaces => return Ok(scope),
            Some(_) => "`check` is called outside of drains and may ask only for namespaces",
            None => {
                "only `make-plan`, `step` and `check` may ask; the other functions are called for their answer alone"
            }
        };
        Err(Error::NotGranted(closed.to_owned()))
    }
}

impl facts::Host for StoreData {
    async fn get_request(&mut self) -> Result<facts::Request, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Request)?;
        let marks = self.meter.counters.fetching(facts.request(asker)).await;
        let Marks { labels, annotations } = to_wit(marks)?;
        Ok(facts::Request {
            trigger: asker.trigger.clone(),
            name: asker.name.clone(),
            labels: entries(labels),
            annotations: entries(annotations),
        })
    }

    async fn list_drain_requests(&mut self) -> Result<Vec<facts::DrainRequest>, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Request)?;
        let found = self.meter.counters.fetching(facts.drain_requests(asker)).await;
        Ok(to_wit(found)?.iter().map(|found| drain_request(found)).collect())
    }

    async fn get_namespace(&mut self, name: String) -> Result<facts::Namespace, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Namespaces)?;
        if !is_namespace(&name) {
            let shown = one_line(&name, SHOWN_BYTES);
            return Err(Error::NotFound(format!(
                "`{shown}` cannot be the name of a namespace"
            )));
        }
        let found = self.meter.counters.fetching(facts.namespace(asker, &name)).await;
        let found = to_wit(found)?;
        Ok(facts::Namespace {
            name,
            labels: entries(found.marks.labels),
            annotations: entries(found.marks.annotations),
            deletion_timestamp: found.deletion.map(|deletion| deletion.as_millis()),
        })
    }

    async fn list_budgets(&mut self) -> Result<Vec<facts::Budget>, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Budgets)?;
        let found = self.meter.counters.fetching(facts.budgets(asker)).await;
        Ok(to_wit(found)?
            .into_iter()
            .map(|fact| budget(fact, asker))
            .collect())
    }

    async fn list_owners(&mut self, pod: String) -> Result<Vec<facts::Owner>, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Owners)?;
        let found = self.meter.counters.fetching(facts.owners(asker, &pod)).await;
        Ok(to_wit(found)?.into_iter().map(owner).collect())
    }

    async fn get_resources(&mut self, pod: String) -> Result<facts::Resources, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Resources)?;
        let found = self.meter.counters.fetching(facts.resources(asker, &pod)).await;
        to_wit(found).map(resources)
    }
}

fn drain_request(found: &DrainRequestFields) -> facts::DrainRequest {
    let found = found.clone();
    let entity = |entity: Entity| facts::Entity {
        type_: entity.kind,
        value: entity.value,
    };
    let names = found.pods_to_drain.into_iter().flat_map(|(namespace, names)| {
        let pod = move |name| facts::PodName {
            namespace: namespace.clone(),
            name,
        };
        names.into_iter().map(pod)
    });
    facts::DrainRequest {
        namespace: found.namespace,
        name: found.name,
        uid: found.uid,
        labels: entries(found.labels),
        annotations: entries(found.annotations),
        creation_timestamp: found.created.map(|created| created.as_millis()),
        check_name: found.check_name,
        error_codes: found.error_codes,
        recommended_action: found.recommended_action,
        health_event_id: found.health_event_id,
        reason: found.reason,
        entities_impacted: found.entities.into_iter().map(entity).collect(),
        metadata: entries(found.metadata),
        pods_to_drain: names.collect(),
    }
}

fn budget(fact: BudgetFact, asker: &Asker) -> facts::Budget {
    let BudgetFact {
        budget,
        expected_pods,
    } = fact;
    let covered = asker.pods.iter().filter(|pod| pod.is_of(&budget));
    let pods = covered.map(|pod| pod.id.uid.0.clone()).collect();
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    facts::Budget {
        pods,
        namespace: budget.namespace,
        name: budget.name,
        expected_pods: count(expected_pods),
        desired_healthy: count(budget.desired_healthy),
        current_healthy: count(budget.current_healthy),
        disruptions_allowed: count(budget.disruptions_allowed),
        unhealthy_pod_eviction_policy: match budget.unhealthy_pods {
            UnhealthyPods::IfHealthyBudget => facts::UnhealthyPodEvictionPolicy::IfHealthyBudget,
            UnhealthyPods::AlwaysAllow => facts::UnhealthyPodEvictionPolicy::AlwaysAllow,
        },
        observed: budget.observed,
    }
}

fn owner(fact: OwnerFact) -> facts::Owner {
    let OwnerFact { reference, marks, .. } = fact;
    facts::Owner {
        api_version: reference.api_version,
        kind: reference.kind,
        name: reference.name,
        uid: reference.uid.0,
        labels: entries(marks.labels),
        annotations: entries(marks.annotations),
        replicas: fact.replicas,
        ready_replicas: fact.ready_replicas,
        strategy: fact.strategy,
    }
}

fn resources(fact: ResourcesFact) -> facts::Resources {
    let request = |(name, amount)| facts::ResourceRequest { name, amount };
    facts::Resources {
        requests: fact.requests.into_iter().map(request).collect(),
        devices: fact.devices.into_iter().map(device).collect(),
        unallocated_claims: fact.unallocated,
    }
}

fn device(fact: DeviceFact) -> facts::Device {
    facts::Device {
        source: match fact.source {
            DeviceSource::Claim(name) => facts::DeviceSource::ResourceClaim(name),
            DeviceSource::Annotation(key) => facts::DeviceSource::Annotation(key),
        },
        driver: fact.id.driver,
        pool: fact.id.pool,
        name: fact.id.name,
        admin_access: fact.admin_access,
        attributes: entries(fact.attributes),
    }
}

fn to_wit<T>(answer: Answer<T>) -> Result<T, Error> {
    answer.map_err(|error| match error {
        AskError::NotFound(what) => Error::NotFound(what),
        AskError::Unavailable(why) => Error::Unavailable(why),
        AskError::TooMany => {
            Error::TooMany("one call may ask for 256 different facts with 8 MiB of labels, annotations and other texts; a hook can ask for more in its next step".to_owned())
        }
    })
}

/// A name that the API server would not look up is not sent to it.
fn is_namespace(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= NAME_BYTES && name.bytes().all(inner)
}
