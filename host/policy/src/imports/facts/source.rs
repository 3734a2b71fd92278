//! The facts that policies can ask for. The driver implements their source; this edge checks the grant before each call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use scupper_api::DrainRequestFields;
use scupper_engine::{Budget, Controller, PodPhase, PodRef, Time, Uid};

use crate::AccessError;

/// Where facts come from. Each call may send requests; nothing is remembered here.
pub trait FactSource: Send + Sync {
    /// The LifecycleEvent with this name and UID.
    fn lifecycle_event<'a>(
        &'a self,
        name: &'a str,
        uid: &'a str,
    ) -> BoxFuture<'a, Result<Marks, AccessError>>;

    /// The DrainRequests that the drain with this id serves.
    fn drain_requests<'a>(
        &'a self,
        drain: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Arc<DrainRequestFields>>, AccessError>>;

    /// The namespace with this name.
    fn namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NamespaceFact, AccessError>>;

    /// All namespaces, by name.
    fn namespaces(&self) -> BoxFuture<'_, Result<BTreeMap<String, NamespaceFact>, AccessError>>;

    /// All disruption budgets.
    fn budgets(&self) -> BoxFuture<'_, Result<Vec<BudgetFact>, AccessError>>;

    /// The object that a reference to an owner names; `None`: it is gone, or of a kind that is not read.
    fn owner<'a>(
        &'a self,
        namespace: &'a str,
        reference: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<OwnerFact>, AccessError>>;

    /// The wanted objects that have the kind of this reference; none if the kind is not read.
    fn owners<'a>(&'a self, wanted: &'a Wanted, like: &'a Controller) -> Listed<'a, OwnerFact>;

    /// What the specs of the node's pods say, by UID.
    fn pod_specs<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<Uid, PodSpecFact>, AccessError>>;

    /// A ResourceClaim; `None`: it is gone.
    fn resource_claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClaimFact>, AccessError>>;

    /// The wanted ResourceClaims.
    fn resource_claims<'a>(&'a self, wanted: &'a Wanted) -> Listed<'a, ClaimFact>;

    /// The attributes of the node's DRA devices.
    fn device_attributes<'a>(&'a self, node: &'a str)
    -> BoxFuture<'a, Result<DeviceAttributes, AccessError>>;

    /// A PersistentVolumeClaim; `None`: it is gone.
    fn volume_claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeClaimFact>, AccessError>>;

    /// The wanted PersistentVolumeClaims.
    fn volume_claims<'a>(&'a self, wanted: &'a Wanted) -> Listed<'a, VolumeClaimFact>;

    /// A PersistentVolume that the node uses; `None`: it is gone.
    fn persistent_volume<'a>(
        &'a self,
        name: &'a str,
        node: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeFact>, AccessError>>;

    /// All PersistentVolumes by name, as a node that uses them sees them.
    fn persistent_volumes<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<String, VolumeFact>, AccessError>>;

    /// The wanted pods of a namespace that have not ended, on all nodes.
    fn peers<'a>(&'a self, wanted: &'a WantedPeers) -> BoxFuture<'a, Result<Vec<PeerFact>, AccessError>>;

    /// All attachments.
    fn volume_attachments(&self) -> BoxFuture<'_, Result<VolumeAttachments, AccessError>>;
}

/// Where the API has an object: its namespace and its name.
pub type Place = (String, String);

/// Objects by their places; `None`: there is no right to list those of all namespaces.
pub type Listed<'a, T> = BoxFuture<'a, Result<Option<BTreeMap<Place, T>>, AccessError>>;

/// The objects that a list is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The namespace to list; `None`: all of them.
    pub namespace: Option<String>,
    /// The objects. Others need not be returned.
    pub places: BTreeSet<Place>,
}

/// The pods that a list of a namespace is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedPeers {
    /// The namespace.
    pub namespace: String,
    /// Only pods whose label has one of these values belong; `None`: it takes a list of all.
    pub label: Option<(String, BTreeSet<String>)>,
    /// Pods with these controllers belong,
    pub controllers: BTreeSet<Uid>,
    /// and those in these groups.
    pub groups: BTreeSet<(&'static str, String)>,
}

impl WantedPeers {
    /// Whether a pod with this controller and these groups belongs.
    pub fn includes(&self, controller: Option<&Uid>, groups: &PodGroups) -> bool {
        controller.is_some_and(|controller| self.controllers.contains(controller))
            || groups.iter().any(|group| self.groups.contains(group))
    }
}

/// The nodes that each PersistentVolume is attached to, or about to be.
pub type VolumeAttachments = BTreeMap<String, Vec<String>>;

/// What drivers publish about their devices.
pub type DeviceAttributes = BTreeMap<DeviceId, BTreeMap<String, String>>;

/// The labels and annotations of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
}

impl Marks {
    /// The bytes of its keys and values.
    pub(super) fn bytes(&self) -> usize {
        let entries = self.labels.iter().chain(&self.annotations);
        entries
            .map(|(key, value)| key.len().saturating_add(value.len()))
            .sum()
    }
}

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFact {
    /// Its labels and annotations.
    pub marks: Marks,
    /// `metadata.deletionTimestamp`
    pub deletion: Option<Time>,
}

/// A disruption budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetFact {
    /// As the engine has it.
    pub budget: Budget,
    /// `status.expectedPods`
    pub expected_pods: i32,
}

/// An owner of pods, directly or through others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerFact {
    /// Which object it is.
    pub reference: Controller,
    /// Its labels and annotations.
    pub marks: Marks,
    /// How many pods it wants.
    pub replicas: Option<u32>,
    /// How many of them are ready.
    pub ready_replicas: Option<u32>,
    /// How it replaces them; empty: it has no strategy.
    pub strategy: String,
    /// Its own controller.
    pub controller: Option<Controller>,
}

impl OwnerFact {
    /// What a reference says of its object.
    pub fn bare(reference: Controller) -> Self {
        Self {
            reference,
            marks: Marks::default(),
            replicas: None,
            ready_replicas: None,
            strategy: String::new(),
            controller: None,
        }
    }
}

/// What a pod's spec says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSpecFact {
    /// Thousandths of `cpu`, whole units of everything else.
    pub requests: BTreeMap<String, u64>,
    /// Its ResourceClaims.
    pub claims: Vec<PodClaimFact>,
    /// Its volumes.
    pub volumes: Vec<PodVolumeFact>,
    /// The scheduling groups that it is part of.
    pub groups: PodGroups,
}

/// A volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodVolumeFact {
    /// Its name in the pod.
    pub name: String,
    /// The kind of its source, such as `emptyDir`.
    pub kind: String,
    /// The PersistentVolumeClaim behind it.
    pub claim: Option<String>,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeClaimFact {
    /// The PersistentVolume; empty: it is not bound.
    pub volume: String,
    /// Its storage class; empty: none.
    pub storage_class: String,
    /// Its access modes.
    pub access_modes: Vec<String>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeFact {
    /// The kind of its source, such as `csi`.
    pub kind: String,
    /// No node can use it other than the one that uses it.
    pub node_local: bool,
}

/// A ResourceClaim of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodClaimFact {
    /// Its name in the pod.
    pub name: String,
    /// The name of the ResourceClaim; `None`: it has not been made from its template yet.
    pub claim: Option<String>,
}

/// The devices of a ResourceClaim; `None`: none are allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimFact {
    /// Each device, and whether the claim has it only for administration.
    pub devices: Option<Vec<(DeviceId, bool)>>,
}

/// What identifies a DRA device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceId {
    /// The DRA driver.
    pub driver: String,
    /// The pool.
    pub pool: String,
    /// The device in its pool.
    pub name: String,
}

/// A pod on any node, and what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFact {
    /// Namespace, name and UID.
    pub pod: PodRef,
    /// Its node; empty: it is not scheduled.
    pub node: String,
    /// Its phase.
    pub phase: PodPhase,
    /// Whether it is ready.
    pub ready: bool,
    /// `metadata.deletionTimestamp`
    pub deletion: Option<Time>,
    /// The UID of its controller.
    pub controller: Option<Uid>,
    /// The scheduling groups that it is part of.
    pub groups: PodGroups,
}

/// What marks a pod as part of a scheduling group, and the group's name.
pub type PodGroups = Vec<(&'static str, String)>;
