//! The host's side of the import `facts`: grants, and calls.

use std::sync::Arc;

use scupper_common::text::one_line;
use scupper_policy_spec::{Capability, Fact};

use super::answers::{Answer, AskError, Asker, Facts};
use super::records::{budget, drain_request, owner, peer, resources, volume};
use super::source::Marks;
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
        let Marks { labels, annotations } = answered(marks)?;
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
        Ok(answered(found)?
            .iter()
            .map(|found| drain_request(found))
            .collect())
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
        let found = answered(found)?;
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
        Ok(answered(found)?
            .into_iter()
            .map(|fact| budget(fact, asker))
            .collect())
    }

    async fn list_owners(&mut self, pod: String) -> Result<Vec<facts::Owner>, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Owners)?;
        let found = self.meter.counters.fetching(facts.owners(asker, &pod)).await;
        Ok(answered(found)?.into_iter().map(owner).collect())
    }

    async fn get_resources(&mut self, pod: String) -> Result<facts::Resources, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Resources)?;
        let found = self.meter.counters.fetching(facts.resources(asker, &pod)).await;
        answered(found).map(resources)
    }

    async fn list_volumes(&mut self, pod: String) -> Result<Vec<facts::Volume>, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Volumes)?;
        let found = self.meter.counters.fetching(facts.volumes(asker, &pod)).await;
        Ok(answered(found)?.into_iter().map(volume).collect())
    }

    async fn list_peers(&mut self, pod: String) -> Result<Vec<facts::Peer>, Error> {
        let FactScope { facts, asker, .. } = self.may_ask(Fact::Peers)?;
        let found = self.meter.counters.fetching(facts.peers(asker, &pod)).await;
        Ok(answered(found)?.into_iter().map(peer).collect())
    }
}

fn answered<T>(answer: Answer<T>) -> Result<T, Error> {
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
