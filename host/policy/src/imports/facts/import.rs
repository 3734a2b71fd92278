//! The host's side of the import `facts`: grants, and calls.

use std::future::Future;
use std::sync::Arc;

use scupper_common::text::one_line;
use scupper_policy_spec::{Capability, Fact};

use super::cache::{Answer, AskError, Facts};
use super::caller::FactCaller;
use super::peers::Relation;
use crate::imports::store_data::StoreData;
use crate::runtime::observer::{AskResult, Observation};
use crate::wit::bindings::scupper::drain::facts::{self, Error};

/// Bytes of a name that the API server accepts as that of a namespace.
const NAME_BYTES: usize = 63;

/// Bytes of a wrong name that an error shows.
const SHOWN_BYTES: usize = 100;

const TOO_MANY: &str = "one call may ask for 256 namespaces besides those of its pods, and learn 8 MiB (or 64 KiB for each of \
                        its pods) of labels, annotations and other texts; a hook can ask for more in its next step";

/// Whom a call may ask, and the answers so far.
pub(crate) struct FactScope {
    pub(crate) facts: Arc<Facts>,
    pub(crate) caller: FactCaller,
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

    async fn list_peers(&self, pods: &[String], relation: Relation) -> Result<Vec<facts::PeerGroup>, Error> {
        let FactScope { facts, caller, .. } = self.may_ask(Fact::Peers)?;
        self.ask(Fact::Peers, facts.peers(caller, pods, relation)).await
    }

    /// Waits for an answer, and counts it.
    async fn ask<T>(&self, fact: Fact, asking: impl Future<Output = Answer<T>>) -> Result<T, Error> {
        let answer = self.meter.counters.fetching(asking).await;
        self.context.observer.observe(Observation::Asked {
            policy: &self.context.policy,
            fact,
            result: AskResult::of(&answer),
        });
        answer.map_err(Error::from)
    }
}

impl AskResult {
    const fn of<T>(answer: &Answer<T>) -> Self {
        match answer {
            Ok(_) => Self::Answered,
            Err(AskError::NotFound(_)) => Self::NotFound,
            Err(AskError::Unavailable(_)) => Self::Unavailable,
            Err(AskError::TooMany) => Self::TooMany,
        }
    }
}

impl From<AskError> for Error {
    fn from(error: AskError) -> Self {
        match error {
            AskError::NotFound(what) => Self::NotFound(what),
            AskError::Unavailable(why) => Self::Unavailable(why),
            AskError::TooMany => Self::TooMany(TOO_MANY.to_owned()),
        }
    }
}

impl facts::Host for StoreData {
    async fn get_request(&mut self) -> Result<facts::Request, Error> {
        let FactScope { facts, caller, .. } = self.may_ask(Fact::Request)?;
        self.ask(Fact::Request, facts.request(caller)).await
    }

    async fn list_drain_requests(&mut self) -> Result<Vec<facts::DrainRequest>, Error> {
        let FactScope { facts, caller, .. } = self.may_ask(Fact::Request)?;
        self.ask(Fact::Request, facts.drain_requests(caller)).await
    }

    async fn get_namespace(&mut self, name: String) -> Result<facts::Namespace, Error> {
        let FactScope { facts, caller, .. } = self.may_ask(Fact::Namespaces)?;
        if !is_namespace(&name) {
            let shown = one_line(&name, SHOWN_BYTES);
            return Err(Error::NotFound(format!(
                "`{shown}` cannot be the name of a namespace"
            )));
        }
        self.ask(Fact::Namespaces, facts.namespace(caller, &name)).await
    }

    async fn list_budgets(&mut self) -> Result<Vec<facts::Budget>, Error> {
        let FactScope { facts, caller, .. } = self.may_ask(Fact::Budgets)?;
        self.ask(Fact::Budgets, facts.budgets(caller)).await
    }

    async fn list_owners(&mut self, pod: String) -> Result<Vec<facts::Owner>, Error> {
        let FactScope { facts, caller, .. } = self.may_ask(Fact::Owners)?;
        self.ask(Fact::Owners, facts.owners(caller, &pod)).await
    }

    async fn get_job(&mut self, pod: String) -> Result<Option<facts::Job>, Error> {
        let FactScope { facts, caller, .. } = self.may_ask(Fact::Owners)?;
        self.ask(Fact::Owners, facts.job(caller, &pod)).await
    }

    async fn get_resources(&mut self, pod: String) -> Result<facts::Resources, Error> {
        let FactScope { facts, caller, .. } = self.may_ask(Fact::Resources)?;
        self.ask(Fact::Resources, facts.resources(caller, &pod)).await
    }

    async fn list_volumes(&mut self, pod: String) -> Result<Vec<facts::Volume>, Error> {
        let FactScope { facts, caller, .. } = self.may_ask(Fact::Volumes)?;
        self.ask(Fact::Volumes, facts.volumes(caller, &pod)).await
    }

    async fn list_controller_peers(&mut self, pods: Vec<String>) -> Result<Vec<facts::PeerGroup>, Error> {
        self.list_peers(&pods, Relation::Controller).await
    }

    async fn list_group_peers(&mut self, pods: Vec<String>) -> Result<Vec<facts::PeerGroup>, Error> {
        self.list_peers(&pods, Relation::SchedulingGroup).await
    }
}

/// A name that the API server would not look up is not sent to it.
fn is_namespace(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= NAME_BYTES && name.bytes().all(inner)
}
