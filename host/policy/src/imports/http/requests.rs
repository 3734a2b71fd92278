//! State that all requests of one policy share.

use std::fmt;
use std::sync::{Arc, Mutex};

use scupper_policy_spec::{HttpRules, HttpWant, Limits, SecretRules};
use tokio::sync::Semaphore;

use super::network::Network;
use super::tls::Tls;
use crate::ClusterAccess;
use crate::imports::secret::{Reader, Redaction, SecretString, Secrets};

/// Concurrent requests of one policy: drains of one node are few, and its API is shared.
const AT_ONCE: usize = 4;

/// Everything that one policy's requests need.
#[derive(Clone)]
pub(crate) struct Requests {
    pub(super) policy: String,
    /// The node that the call is about; empty: none.
    pub(super) node: String,
    pub(super) rules: HttpRules,
    pub(super) secrets: SecretRules,
    pub(super) wants: WantedRequests,
    pub(super) tls: Arc<Tls>,
    pub(super) network: Network,
    pub(super) memory: Secrets,
    pub(super) cluster: Arc<dyn ClusterAccess>,
    pub(super) limits: Limits,
    pub(super) at_once: Arc<Semaphore>,
    pub(super) redaction: Arc<Mutex<Option<CachedRedaction>>>,
}

/// The requests and secrets that a policy asks for; empty until it has described itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedRequests {
    pub(crate) http: Vec<HttpWant>,
    pub(crate) secrets: Vec<String>,
}

/// The redaction of the last response: the next one usually has the same secrets.
pub(super) struct CachedRedaction {
    pub(super) of: Vec<SecretString>,
    pub(super) redaction: Arc<Redaction>,
}

/// Where requests go, and the secrets remembered for them.
pub(crate) struct RequestDeps {
    pub(crate) network: Network,
    pub(crate) memory: Secrets,
    pub(crate) cluster: Arc<dyn ClusterAccess>,
}

impl Requests {
    /// For a policy that has not described itself yet, and so may send nothing.
    pub(crate) fn new(
        policy: &str,
        (rules, secrets, tls): (HttpRules, SecretRules, Arc<Tls>),
        surroundings: RequestDeps,
        limits: &Limits,
    ) -> Self {
        Self {
            policy: policy.to_owned(),
            node: String::new(),
            rules,
            secrets,
            wants: WantedRequests::default(),
            tls,
            network: surroundings.network,
            memory: surroundings.memory,
            cluster: surroundings.cluster,
            limits: limits.clone(),
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
            redaction: Arc::default(),
        }
    }

    /// The same, with the requests that the policy asks for.
    pub(crate) fn wanting(&self, wants: WantedRequests) -> Self {
        Self {
            wants,
            ..self.clone()
        }
    }

    /// The same for a call about this node.
    pub(crate) fn about(&self, node: &str) -> Self {
        Self {
            node: node.to_owned(),
            ..self.clone()
        }
    }

    /// The most requests in one step.
    pub(crate) const fn a_step(&self) -> u32 {
        self.limits.requests
    }

    /// Reads its secrets.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader {
            policy: &self.policy,
            node: &self.node,
            rules: &self.secrets,
            memory: &self.memory,
            cluster: self.cluster.as_ref(),
        }
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests")
            .field("policy", &self.policy)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
