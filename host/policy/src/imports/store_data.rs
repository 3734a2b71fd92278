//! Everything a guest can reach: the host's side of the imports `log`, `config`, `cluster` and `plan`. Nothing else is linked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use scupper_common::clock::Clock;
use scupper_engine::{PodRef, Uid};
use scupper_policy_spec::{Capability, Grant, allows_annotation};
use wasmtime::component::{HasSelf, Linker};

use super::events::EventLimiter;
use super::facts::import::FactScope;
use super::granted::Wants;
use super::http::Requests;
use super::log::LogLimiter;
use super::wasi::{Occasion, Wasi};
use crate::runtime::meter::Meter;
use crate::runtime::observer::{Observation, Observer};
use crate::runtime::usage::{Account, CallResult, Usage};
use crate::wit::bindings::scupper::drain::cluster::{self, Error};
use crate::wit::bindings::scupper::drain::types::{self, NodeResult, PodResult};
use crate::wit::bindings::scupper::drain::{config, events, facts, http, log, plan};
use crate::wit::to_wit_owned;
use crate::{AccessError, ClusterAccess};

/// Writes to the cluster in one step. A hook with more work takes another step.
const WRITES: u32 = 100;

/// Bytes of an annotation's value; all annotations of an object together may have 256 KiB.
const VALUE_BYTES: usize = 32 * 1024;

/// Bytes of all annotations of the node that one policy may set, their keys included. If the node's annotations are
/// full, the driver cannot write the checkpoint, and no drain begins.
const NODE_BYTES: usize = 64 * 1024;

/// State that all calls of one policy share.
pub(crate) struct PolicyContext {
    /// The operator's name for it.
    pub(crate) policy: String,
    /// What the operator configured.
    pub(crate) config: BTreeMap<String, String>,
    /// The capabilities it asks for, all granted; empty until it has described itself.
    pub(crate) grants: Vec<Grant>,
    /// State for its requests.
    pub(crate) requests: Arc<Requests>,
    /// The cluster.
    pub(crate) cluster: Arc<dyn ClusterAccess>,
    /// For log rates.
    pub(crate) clock: Clock,
    /// Its log lines.
    pub(crate) log: Arc<Mutex<LogLimiter>>,
    /// Its Events.
    pub(crate) events: Arc<Mutex<EventLimiter>>,
    /// SHA-256 of its file, in hex.
    pub(crate) digest: String,
    /// The resource usage of its calls.
    pub(crate) account: Arc<Account>,
    /// Receives observations of its actions.
    pub(crate) observer: Arc<dyn Observer>,
}

/// One call, as the store's data.
pub(crate) struct StoreData {
    pub(crate) context: Arc<PolicyContext>,
    pub(crate) scope: CallScope,
    /// Whom it may ask about the cluster.
    pub(crate) facts: Option<FactScope>,
    pub(crate) meter: Meter,
    writes: u32,
    /// Never locked: the mutex makes the data shareable between futures.
    wasi: Option<Box<Mutex<Wasi>>>,
    sent: u32,
}

/// The actions that a call may take.
pub(crate) enum CallScope {
    /// None: the function is pure.
    Nothing,
    /// Requests that change nothing on the servers, and reading this node.
    Servers(Option<String>),
    /// All granted actions.
    Granted(StepScope),
}

/// The objects that a hook step may read and write.
pub(crate) struct StepScope {
    /// The node's name.
    pub(crate) node: String,
    /// The driver's own pod.
    pub(crate) own_pod: Option<Uid>,
    /// The pods shown to it, if it may act on pods at all.
    pub(crate) pods: Vec<PodRef>,
    /// The pods that are still to leave.
    pub(crate) leaving: Vec<Uid>,
    /// The operator has declared that the machine is off.
    pub(crate) machine_is_off: bool,
}

impl CallScope {
    /// The scope of a hook step; only steps may reach the cluster.
    pub(crate) const fn of_step(&self) -> Option<&StepScope> {
        match self {
            Self::Granted(scope) => Some(scope),
            Self::Nothing | Self::Servers(_) => None,
        }
    }
}

impl PolicyContext {
    /// The same, with its granted capabilities.
    pub(crate) fn granted(&self, wants: &Wants) -> Self {
        Self {
            policy: self.policy.clone(),
            config: self.config.clone(),
            grants: wants.grants.clone(),
            requests: Arc::new(self.requests.wanting(wants.requests.clone())),
            cluster: Arc::clone(&self.cluster),
            clock: self.clock,
            log: Arc::clone(&self.log),
            events: Arc::clone(&self.events),
            digest: self.digest.clone(),
            account: Arc::clone(&self.account),
            observer: Arc::clone(&self.observer),
        }
    }

    /// Writes a line into the log, if the allowance permits.
    pub(crate) fn log(&self, level: log::Level, message: &str) -> bool {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.write(&self.policy, level, message, self.clock.now())
    }

    /// Reports the end of a call.
    pub(crate) fn called(&self, function: &'static str, result: CallResult, usage: Usage) {
        self.account.add(&usage);
        self.observer.observe(Observation::Called {
            policy: &self.policy,
            digest: &self.digest,
            function,
            result,
            usage,
        });
    }
}

impl StoreData {
    pub(crate) fn new(
        context: Arc<PolicyContext>,
        (scope, facts): (CallScope, Option<FactScope>),
        meter: Meter,
        wasi: Option<Box<Mutex<Wasi>>>,
    ) -> Self {
        Self {
            context,
            scope,
            facts,
            meter,
            writes: 0,
            wasi,
            sent: 0,
        }
    }

    /// The harmless part of WASI. Without the grant no import uses it; if one did, it would get the context of a pure
    /// function.
    pub(crate) fn wasi(&mut self) -> &mut Wasi {
        let none = || {
            Box::new(Mutex::new(Wasi::new(&Occasion {
                context: &self.context,
                counters: &self.meter.counters,
                drain: None,
                pure: true,
                handles: 0,
            })))
        };
        let wasi = self.wasi.get_or_insert_with(none);
        wasi.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn scope(&self) -> Result<&StepScope, Error> {
        let closed = "only `step` may use `cluster`; the other functions are called for their answer alone";
        self.scope
            .of_step()
            .ok_or_else(|| Error::NotGranted(closed.to_owned()))
    }

    /// The node that it may read.
    fn node(&self) -> Result<&str, Error> {
        match &self.scope {
            CallScope::Servers(Some(node)) => Ok(node),
            _ => Ok(&self.scope()?.node),
        }
    }

    /// Permits one more request, if the function may send any and the step has not sent too many.
    pub(crate) fn may_send(&mut self, method: http::Method) -> Result<Requests, http::Error> {
        let changes = matches!(
            method,
            http::Method::Put | http::Method::Patch | http::Method::Delete
        );
        let closed = match self.scope {
            CallScope::Nothing => {
                "only `step` and `check` may send; the other functions are called for their answer alone"
            }
            CallScope::Servers(_) if changes => {
                "`check` may look and change nothing: it sends no PUT, PATCH or DELETE"
            }
            CallScope::Servers(_) | CallScope::Granted(_) => "",
        };
        if !closed.is_empty() {
            return Err(http::Error::NotGranted(closed.to_owned()));
        }
        let requests = &self.context.requests;
        if self.sent >= requests.a_step() {
            return Err(http::Error::TooMany(format!(
                "one step may send {}; go on in the next",
                requests.a_step()
            )));
        }
        self.sent += 1;
        Ok(requests.about(self.node().unwrap_or_default()))
    }

    /// Reports the end of a request.
    pub(crate) fn has_sent(&self, response: Option<&http::Response>) {
        let counters = &self.meter.counters;
        counters.request();
        if let Some(response) = response {
            counters.response(response.body.len());
        }
        self.context.observer.observe(Observation::Requested {
            policy: &self.context.policy,
            status: response.map(|response| response.status),
        });
    }

    /// Checks one write as far as possible without the cluster.
    fn may_write(&mut self, capability: Capability, key: &str, value: Option<&str>) -> Result<(), Error> {
        self.scope()?;
        if !allows_annotation(&self.context.grants, capability, key) {
            let text = format!(
                "{capability}: `{key}` is not a valid key below a prefix that was wanted and granted"
            );
            return Err(Error::NotGranted(text));
        }
        if value.is_some_and(|value| value.len() > VALUE_BYTES) {
            return Err(Error::NotGranted(format!(
                "the value of `{key}` has more than {VALUE_BYTES} bytes"
            )));
        }
        self.writes += 1;
        if self.writes > WRITES {
            return Err(Error::Unavailable(format!(
                "one step may write {WRITES} times; go on in the next"
            )));
        }
        Ok(())
    }

    fn tell_write(&self, capability: Capability, key: &str, value: Option<&str>) {
        let policy = &self.context.policy;
        tracing::info!(target: "scupper::policy", policy, %capability, key, removed = value.is_none(), "annotates");
    }

    /// Refuses a value with which the policy would exceed its share of the node's annotations. The node's current
    /// annotations count, not the writes since the driver's start.
    async fn fits(&self, key: &str, value: &str) -> Result<(), Error> {
        let node = &self.scope()?.node;
        let asked = self.context.cluster.node(node);
        let node = self.meter.counters.waiting(asked).await.map_err(refusal)?;
        let own = |other: &str| allows_annotation(&self.context.grants, Capability::NodeAnnotations, other);
        let others = node.annotations.iter();
        let others = others.filter(|(other, _)| *other != key && own(other));
        let sizes: Vec<(usize, &str)> = others
            .map(|(other, value)| (other.len().saturating_add(value.len()), other.as_str()))
            .collect();
        let sum: usize = sizes.iter().map(|(bytes, _)| bytes).sum();
        let sum = sum.saturating_add(key.len()).saturating_add(value.len());
        if sum <= NODE_BYTES {
            return Ok(());
        }
        let largest = sizes.iter().max();
        let largest = largest.map_or_else(String::new, |(bytes, other)| {
            format!("; the largest besides it is `{other}` with {bytes}, remove what is not needed")
        });
        Err(Error::NotGranted(format!(
            "with `{key}` the annotations that this policy may set on node {} would have {sum} bytes, and {NODE_BYTES} are \
             the most{largest}",
            node.name
        )))
    }

    async fn annotate_node(&mut self, key: &str, value: Option<&str>) -> Result<(), Error> {
        self.may_write(Capability::NodeAnnotations, key, value)?;
        if let Some(value) = value {
            self.fits(key, value).await?;
        }
        self.tell_write(Capability::NodeAnnotations, key, value);
        let node = &self.scope()?.node;
        let asked = self.context.cluster.annotate_node(node, key, value);
        self.meter.counters.waiting(asked).await.map_err(refusal)
    }

    async fn annotate_pod(&mut self, uid: &str, key: &str, value: Option<&str>) -> Result<(), Error> {
        self.may_write(Capability::PodAnnotations, key, value)?;
        let pod = self.scope()?.pods.iter().find(|pod| pod.uid.as_str() == uid);
        let pod = pod.ok_or_else(|| Error::NotFound(format!("no pod on the node has the UID {uid}")))?;
        self.tell_write(Capability::PodAnnotations, key, value);
        let asked = self.context.cluster.annotate_pod(pod, key, value);
        self.meter.counters.waiting(asked).await.map_err(refusal)
    }
}

impl Drop for StoreData {
    fn drop(&mut self) {
        let mut log = self.context.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.tell_dropped(&self.context.policy);
    }
}

/// Links everything that guests may import.
pub(crate) fn link(linker: &mut Linker<StoreData>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<_>>(linker, |caller| caller)?;
    log::add_to_linker::<_, HasSelf<_>>(linker, |caller| caller)?;
    config::add_to_linker::<_, HasSelf<_>>(linker, |caller| caller)?;
    cluster::add_to_linker::<_, HasSelf<_>>(linker, |caller| caller)?;
    plan::add_to_linker::<_, HasSelf<_>>(linker, |caller| caller)?;
    facts::add_to_linker::<_, HasSelf<_>>(linker, |caller| caller)?;
    events::add_to_linker::<_, HasSelf<_>>(linker, |caller| caller)?;
    http::add_to_linker::<_, HasSelf<_>>(linker, |caller| caller)
}

impl types::Host for StoreData {}

impl log::Host for StoreData {
    fn write(&mut self, level: log::Level, message: String) {
        let logged = self.context.log(level, &message);
        self.meter.counters.line(logged);
    }
}

impl config::Host for StoreData {
    fn get(&mut self, key: String) -> Option<String> {
        self.context.config.get(&key).cloned()
    }

    fn keys(&mut self) -> Vec<String> {
        self.context.config.keys().cloned().collect()
    }
}

impl cluster::Host for StoreData {
    async fn get_cluster_uid(&mut self) -> Result<String, Error> {
        if matches!(self.scope, CallScope::Nothing) {
            let closed =
                "only `step` and `check` may ask; the other functions are called for their answer alone";
            return Err(Error::NotGranted(closed.to_owned()));
        }
        let asked = self.context.cluster.cluster_uid();
        let uid = self.meter.counters.waiting(asked).await.map_err(refusal)?;
        Ok(uid.as_str().to_owned())
    }

    async fn get_node(&mut self) -> Result<NodeResult, Error> {
        let asked = self.context.cluster.node(self.node()?);
        let node = self.meter.counters.waiting(asked).await.map_err(refusal)?;
        Ok(to_wit_owned::node(node))
    }

    async fn list_pods(&mut self) -> Result<Vec<PodResult>, Error> {
        let asked = self.context.cluster.pods(self.node()?);
        let pods = self.meter.counters.waiting(asked).await.map_err(refusal)?;
        let own_pod = self.scope.of_step().and_then(|step| step.own_pod.as_ref());
        Ok(pods
            .into_iter()
            .map(|pod| to_wit_owned::pod(pod, own_pod))
            .collect())
    }

    async fn set_node_annotation(&mut self, key: String, value: String) -> Result<(), Error> {
        self.annotate_node(&key, Some(&value)).await
    }

    async fn remove_node_annotation(&mut self, key: String) -> Result<(), Error> {
        self.annotate_node(&key, None).await
    }

    async fn set_pod_annotation(&mut self, pod: String, key: String, value: String) -> Result<(), Error> {
        self.annotate_pod(&pod, &key, Some(&value)).await
    }

    async fn remove_pod_annotation(&mut self, pod: String, key: String) -> Result<(), Error> {
        self.annotate_pod(&pod, &key, None).await
    }
}

impl plan::Host for StoreData {
    fn leaving(&mut self) -> Vec<String> {
        let leaving = self.scope.of_step().map(|step| step.leaving.iter());
        leaving
            .into_iter()
            .flatten()
            .map(|uid| uid.as_str().to_owned())
            .collect()
    }

    fn machine_is_off(&mut self) -> bool {
        self.scope.of_step().is_some_and(|step| step.machine_is_off)
    }
}

fn refusal(error: AccessError) -> Error {
    match error {
        AccessError::NotFound(what) => Error::NotFound(what),
        AccessError::Unavailable(why) => Error::Unavailable(why),
    }
}
