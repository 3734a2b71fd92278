//! Asks about the cluster beyond what a call shows. Each function needs a grant of its own.
//!
//! Planners may ask: the answers are fixed for one plan. If one could not be read, the host discards the plan and has it
//! made again a few seconds later, so a planner passes errors on with `?`.
//!
//! ```
//! use scupper_sdk::{Description, Draft, Drain, Grant, Node, Planner, Policy, description, facts};
//!
//! /// Keeps the pods of marked namespaces.
//! struct KeepMarked;
//!
//! impl Policy for KeepMarked {
//!     fn describe() -> Description {
//!         description!("Keeps pods in namespaces with the label example.com/keep=true")
//!             .wants(Grant::facts_of_namespaces())
//!     }
//! }
//!
//! impl Planner for KeepMarked {
//!     fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
//!         for pod in draft.pods() {
//!             let namespace = facts::namespace(&pod.namespace)?;
//!             if namespace.label("example.com/keep") == Some("true") {
//!                 draft.keep(pod, "its namespace is marked");
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! use scupper_sdk::{Verdict, testing::{Host, namespace, pod}};
//!
//! let host = Host::new();
//! host.pods([pod("shop/cart"), pod("bank/ledger")]);
//! host.namespaces([namespace("bank").with_label("example.com/keep", "true")]);
//! let plan = host.plan::<KeepMarked>().unwrap();
//! assert_eq!(plan.verdict("shop/cart"), Some(Verdict::Evict));
//! assert_eq!(plan.verdict("bank/ledger"), Some(Verdict::Keep));
//! ```

use std::fmt;

use crate::{
    Node, Pod, bindings::imports::scupper::drain::facts as generated, config::matches_any, host,
    objects::value,
};

pub use generated::{
    Budget, Device, DeviceSource, DisruptionAction, DrainRequest, Entity, Job, Namespace, Owner, Peer,
    PeerGroup, PodName, Request, ResourceRequest, Resources, UnhealthyPodEvictionPolicy, Volume, VolumeClaim,
};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No grant covers the call: the policy must want the grant and the operator must give it.
    NotGranted(String),
    /// No such object.
    NotFound(String),
    /// The API server refused or could not be reached. The host makes the plan again; a step retries later.
    Unavailable(String),
    /// The call asks for too many different facts.
    TooMany(String),
}

/// Who asked for the drain, and why. Needs [`Grant::facts_of_request`](crate::Grant::facts_of_request).
pub fn request() -> Result<Request, Error> {
    Ok(host::facts::get_request()?)
}

/// The DrainRequests that this drain serves, the oldest first; none if something else asked for it. Needs
/// [`Grant::facts_of_request`](crate::Grant::facts_of_request).
pub fn drain_requests() -> Result<Vec<DrainRequest>, Error> {
    Ok(host::facts::list_drain_requests()?)
}

/// A namespace. Needs [`Grant::facts_of_namespaces`](crate::Grant::facts_of_namespaces).
pub fn namespace(name: &str) -> Result<Namespace, Error> {
    Ok(host::facts::get_namespace(name)?)
}

/// The disruption budgets that cover a pod of the call. Needs
/// [`Grant::facts_of_budgets`](crate::Grant::facts_of_budgets).
pub fn budgets() -> Result<Vec<Budget>, Error> {
    Ok(host::facts::list_budgets()?)
}

/// The controller of a pod, the controller of that, and so on; the last one is the workload that people know. Needs
/// [`Grant::facts_of_owners`](crate::Grant::facts_of_owners).
pub fn owners(pod: &Pod) -> Result<Vec<Owner>, Error> {
    if pod.controller.is_none() {
        return Ok(Vec::new());
    }
    Ok(host::facts::list_owners(&pod.uid)?)
}

/// The nearest owner of a pod that is of one of these kinds, for people: `Job report`. Asks only if the pod's controller is
/// not. Needs [`Grant::facts_of_owners`](crate::Grant::facts_of_owners).
pub fn owner_of_kind(pod: &Pod, kinds: &[String]) -> Result<Option<String>, Error> {
    let is_one = |kind: &String| kinds.contains(kind);
    match &pod.controller {
        Some(controller) if is_one(&controller.kind) => {
            Ok(Some(format!("{} {}", controller.kind, controller.name)))
        }
        Some(_) if !kinds.is_empty() => {
            let owner = owners(pod)?.into_iter().find(|owner| is_one(&owner.kind));
            Ok(owner.map(|owner| format!("{} {}", owner.kind, owner.name)))
        }
        _ => Ok(None),
    }
}

/// The Job that controls a pod; `None`: no Job does. Needs [`Grant::facts_of_owners`](crate::Grant::facts_of_owners).
pub fn job(pod: &Pod) -> Result<Option<Job>, Error> {
    match &pod.controller {
        Some(controller) if controller.kind == "Job" => Ok(host::facts::get_job(&pod.uid)?),
        _ => Ok(None),
    }
}

/// What a pod requests, and its devices. Needs [`Grant::facts_of_resources`](crate::Grant::facts_of_resources).
pub fn resources(pod: &Pod) -> Result<Resources, Error> {
    Ok(host::facts::get_resources(&pod.uid)?)
}

/// The volumes of a pod, and the claims behind them. Needs
/// [`Grant::facts_of_volumes`](crate::Grant::facts_of_volumes).
pub fn volumes(pod: &Pod) -> Result<Vec<Volume>, Error> {
    Ok(host::facts::list_volumes(&pod.uid)?)
}

/// The scheduling groups of these pods, with the groups' other pods on all nodes. Ask for all pods at once: the host lists
/// only the groups that there are. Needs [`Grant::facts_of_peers`](crate::Grant::facts_of_peers).
pub fn group_peers<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> Result<Vec<PeerGroup>, Error> {
    let uids: Vec<_> = pods.into_iter().map(|pod| pod.uid.clone()).collect();
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(host::facts::list_group_peers(&uids)?)
}

/// The pods with the same controllers as these, on all nodes. The host lists the namespaces of these pods whole, so ask only
/// for pods that matter, and for all of them at once. Needs [`Grant::facts_of_peers`](crate::Grant::facts_of_peers).
pub fn controller_peers<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> Result<Vec<PeerGroup>, Error> {
    let owned = pods.into_iter().filter(|pod| pod.controller.is_some());
    let uids: Vec<_> = owned.map(|pod| pod.uid.clone()).collect();
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(host::facts::list_controller_peers(&uids)?)
}

impl PeerGroup {
    /// Whether a pod that was asked about belongs to it.
    pub fn has(&self, pod: &Pod) -> bool {
        self.pods.contains(&pod.uid)
    }
}

impl Peer {
    /// Whether it is on a node other than this one.
    pub fn is_elsewhere(&self, node: &Node) -> bool {
        !self.node.is_empty() && self.node != node.name
    }

    /// Whether its deletion has been requested.
    pub const fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

impl Volume {
    /// Whether it has a claim that outlives the pod. The claim of an `ephemeral` volume does not.
    pub fn is_persistent(&self) -> bool {
        self.claim.is_some() && self.kind != "ephemeral"
    }

    /// Whether a node other than this one also has it attached, or is about to.
    pub fn is_attached_elsewhere(&self, node: &Node) -> bool {
        let mut nodes = self.claim.iter().flat_map(|claim| &claim.attached_to);
        nodes.any(|name| *name != node.name)
    }
}

impl Resources {
    /// How much of a resource it requests: thousandths of `cpu`, bytes of `memory`, whole units of everything else.
    pub fn requested(&self, name: &str) -> u64 {
        let request = self.requests.iter().find(|request| request.name == name);
        request.map_or(0, |request| request.amount)
    }

    /// How much it requests of all resources that match one of these patterns (see
    /// [`config::matches`](crate::config::matches)).
    pub fn requested_of(&self, patterns: &[String]) -> u64 {
        let requests = self.requests.iter();
        let requests = requests.filter(|request| matches_any(patterns, &request.name));
        requests.map(|request| request.amount).sum()
    }

    /// Its devices whose driver matches one of these patterns. Those that it only monitors (`admin-access`) do not
    /// count.
    pub fn devices_of<'r>(&'r self, patterns: &'r [String]) -> impl Iterator<Item = &'r Device> {
        let devices = self.devices.iter().filter(|device| !device.admin_access);
        devices.filter(|device| matches_any(patterns, &device.driver))
    }

    /// Whether it has a device with this name, or with this text as an attribute, such as its UUID. Devices that it only
    /// watches over (`admin-access`) do not count.
    pub fn has_device(&self, id: &str) -> bool {
        let mut devices = self.devices.iter().filter(|device| !device.admin_access);
        devices.any(|device| device.is(id))
    }
}

impl Device {
    /// Whether it is the GPU with this UUID or index, or a part of it; `None`: what is known of the device does not tell.
    pub fn is_gpu(&self, id: &str) -> Option<bool> {
        let is_uuid = |text: &&str| text.starts_with("GPU-");
        let known = if is_uuid(&id) {
            let names = [
                self.attribute("parentUUID"),
                self.attribute("uuid"),
                Some(self.name.as_str()),
            ];
            // Replicas of a shared GPU have a number behind its UUID: `GPU-41f0::1`. Parts have others, like `MIG-7d2c`.
            let mut uuids = names
                .into_iter()
                .flatten()
                .filter_map(|name| name.split("::").next());
            uuids.find(is_uuid)
        } else if id.parse::<u32>().is_ok() {
            // A part's `index` is its own.
            self.attribute("parentIndex").or_else(|| self.attribute("index"))
        } else {
            None
        };
        known.map(|known| known == id)
    }

    /// Whether this is its name, or one of its attributes, such as its UUID.
    pub fn is(&self, id: &str) -> bool {
        self.name == id || self.attributes.iter().any(|attribute| attribute.value == id)
    }

    /// The value of an attribute.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        value(&self.attributes, key)
    }
}

impl Budget {
    /// Whether it covers the pod.
    pub fn covers(&self, pod: &Pod) -> bool {
        self.pods.contains(&pod.uid)
    }

    /// Whether it blocks its pods even when all are healthy: a single replica with `minAvailable: 1`, or
    /// `maxUnavailable: 0`.
    pub const fn can_never_allow(&self) -> bool {
        self.observed && self.desired_healthy >= self.expected_pods
    }
}

impl Owner {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        value(&self.labels, key)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        value(&self.annotations, key)
    }
}

impl Job {
    /// Whether an eviction of this pod makes the Job, or the pod's index of it, fail for good: its limit of failures is
    /// reached, or its failure policy says so.
    pub fn fails_with(&self, pod: &Pod) -> bool {
        self.fails_after(pod, 0)
    }

    /// The same if so many other pods of the Job are evicted as well: each of them may be a failure of the Job.
    pub fn fails_after(&self, pod: &Pod, evicted: u32) -> bool {
        match self.on_disruption {
            DisruptionAction::Ignore => false,
            DisruptionAction::FailIndex | DisruptionAction::FailJob => true,
            DisruptionAction::Count => match self.backoff_limit_per_index {
                // Another pod is of another index.
                Some(limit) => index_failures(pod) >= limit,
                None => self.failed.saturating_add(evicted) >= self.backoff_limit,
            },
        }
    }
}

/// How often pods of this one's index have failed.
fn index_failures(pod: &Pod) -> u32 {
    let count = pod.annotation("batch.kubernetes.io/job-index-failure-count");
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

impl Request {
    /// The value of a label of the LifecycleEvent.
    pub fn label(&self, key: &str) -> Option<&str> {
        value(&self.labels, key)
    }

    /// The value of an annotation of the LifecycleEvent.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        value(&self.annotations, key)
    }
}

impl DrainRequest {
    /// The values of the entities of this type, such as `GPU_UUID`.
    pub fn entities<'r>(&'r self, entity_type: &'r str) -> impl Iterator<Item = &'r str> {
        let of_type = self
            .entities_impacted
            .iter()
            .filter(move |entity| entity.type_ == entity_type);
        of_type.map(|entity| entity.value.as_str())
    }

    /// The value of an entry of its metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        value(&self.metadata, key)
    }
}

impl Namespace {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        value(&self.labels, key)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        value(&self.annotations, key)
    }

    /// Whether it is being deleted, with everything in it.
    pub const fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted(message) => write!(f, "not granted: {message}"),
            Self::NotFound(message) => write!(f, "not found: {message}"),
            Self::Unavailable(message) | Self::TooMany(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

/// For planners, whose errors are texts.
impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.to_string()
    }
}

impl From<generated::Error> for Error {
    fn from(error: generated::Error) -> Self {
        match error {
            generated::Error::NotGranted(message) => Self::NotGranted(message),
            generated::Error::NotFound(message) => Self::NotFound(message),
            generated::Error::Unavailable(message) => Self::Unavailable(message),
            generated::Error::TooMany(message) => Self::TooMany(message),
        }
    }
}
