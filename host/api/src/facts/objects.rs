//! The objects that policies may ask about, each with the fields that some policy needs.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{Controller, Pod, PodPhase, PodRef, Time, Uid, VolumeClaim};
use serde::{Deserialize, Deserializer, Serialize};

/// Labels, annotations or attributes.
pub type Texts = BTreeMap<String, String>;

/// The metadata of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.labels`
    pub labels: Texts,
    /// `metadata.annotations`, without the copy of `kubectl apply`.
    pub annotations: Texts,
    /// `metadata.deletionTimestamp`
    pub deletion: Option<Time>,
}

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its metadata.
    pub metadata: Metadata,
}

/// An owner of pods, directly or through others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its namespace.
    pub namespace: String,
    /// Which object it is.
    pub reference: Controller,
    /// `metadata.labels`
    pub labels: Texts,
    /// `metadata.annotations`
    pub annotations: Texts,
    /// How many pods it wants; `None`: it counts none.
    pub replicas: Option<u32>,
    /// How many of them are ready.
    pub ready_replicas: Option<u32>,
    /// How it replaces them; empty: it has no strategy.
    pub strategy: String,
    /// How many failures it bears; `None`: it is no Job.
    pub failures: Option<JobFailures>,
    /// Its own controller.
    pub controller: Option<Controller>,
}

/// How many failures of its pods a Job bears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFailures {
    /// `status.failed`
    pub failed: u32,
    /// `spec.backoffLimit`
    pub limit: u32,
    /// `spec.backoffLimitPerIndex`
    pub limit_per_index: Option<u32>,
    /// What an eviction means to it.
    pub on_disruption: DisruptionAction,
}

/// What a Job does when a pod is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DisruptionAction {
    /// It starts another pod.
    Ignore,
    /// It counts a failure.
    #[default]
    Count,
    /// It gives up the pod's index.
    FailIndex,
    /// It fails.
    FailJob,
}

/// What a pod's spec says beyond what drains need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSpec {
    /// The UID of the pod.
    pub uid: String,
    /// What the scheduler counts: thousandths of `cpu`, whole units of everything else.
    pub requests: BTreeMap<String, u64>,
    /// Its ResourceClaims.
    pub claims: Vec<PodClaim>,
    /// Its volumes.
    pub volumes: Vec<PodVolume>,
    /// `spec.schedulingGroup.podGroupName`; empty: it has none.
    pub scheduling_group: String,
    /// The scheduling groups that it is part of.
    #[serde(deserialize_with = "known_groups")]
    pub groups: PodGroups,
}

/// A ResourceClaim of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodClaim {
    /// Its name in the pod; empty: the scheduler made it for extended resources that the pod requests.
    pub name: String,
    /// The name of the ResourceClaim; `None`: it has not been made from its template yet.
    pub claim: Option<String>,
}

/// A volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodVolume {
    /// Its name in the pod.
    pub name: String,
    /// The field that is its source, such as `emptyDir`.
    pub kind: String,
    /// The PersistentVolumeClaim behind it.
    pub claim: Option<String>,
}

/// What marks a pod as part of a scheduling group, and the group's name.
pub type PodGroups = Vec<(&'static str, String)>;

/// A pod on any node, and what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Namespace, name and UID.
    pub id: PodRef,
    /// `spec.nodeName`; empty: it is not scheduled yet.
    pub node: String,
    /// `status.phase`
    pub phase: PodPhase,
    /// Whether the condition `Ready` is `True`.
    pub ready: bool,
    /// `metadata.deletionTimestamp`
    pub deletion: Option<Time>,
    /// The UID of its controller.
    pub controller: Option<Uid>,
    /// The scheduling groups that it is part of.
    #[serde(deserialize_with = "known_groups")]
    pub groups: PodGroups,
}

/// Which pods of a namespace that have not ended a list is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerSelection {
    /// The namespace.
    pub namespace: String,
    /// Only pods whose label has one of these values belong; `None`: it takes a list of all.
    pub label: Option<(String, BTreeSet<String>)>,
    /// Pods with these controllers belong,
    pub controllers: BTreeSet<Uid>,
    /// and those in these groups.
    pub groups: BTreeSet<(&'static str, String)>,
}

/// What identifies a device of DRA (dynamic resource allocation).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceId {
    /// The DRA driver.
    pub driver: String,
    /// The pool.
    pub pool: String,
    /// The device in its pool.
    pub name: String,
}

/// A ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceClaim {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// The allocated devices; `None`: none are allocated yet.
    pub devices: Option<Vec<ClaimedDevice>>,
}

/// A device of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedDevice {
    /// Which device.
    pub id: DeviceId,
    /// For administration, while others use it.
    pub admin_access: bool,
}

/// The devices of one ResourceSlice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSlice {
    /// The node that the devices belong to; empty: not one node.
    pub node: String,
    /// Slices of a pool with a lower generation are out of date.
    pub generation: i64,
    /// The attributes of each device.
    #[serde(with = "pairs")]
    pub devices: BTreeMap<DeviceId, Texts>,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentVolumeClaim {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `spec.volumeName`; empty: it is not bound.
    pub volume: String,
    /// `spec.storageClassName`
    pub storage_class: String,
    /// `spec.accessModes`
    pub access_modes: Vec<String>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentVolume {
    /// `metadata.name`
    pub name: String,
    /// The field of `spec` that is its source, such as `csi`.
    pub kind: String,
    /// The claim that is bound to it.
    pub claim: Option<VolumeClaim>,
    /// For each alternative of its node affinity, the labels that must have exactly one value, in order.
    pub pins: Vec<Vec<(String, String)>>,
}

/// A VolumeAttachment of a PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeAttachment {
    /// `spec.source.persistentVolumeName`
    pub volume: String,
    /// `spec.nodeName`
    pub node: String,
}

/// What marks a pod as part of a group since Kubernetes 1.36: `spec.schedulingGroup.podGroupName`.
const SCHEDULING_GROUP: &str = "spec.schedulingGroup";

/// Labels or annotations whose value names the pods that a scheduler or a controller places together: coscheduling,
/// Volcano, Kueue, LeaderWorkerSet, JobSet and KAI.
const GROUP_MARKS: [&str; 6] = [
    "scheduling.x-k8s.io/pod-group",
    "scheduling.k8s.io/group-name",
    "kueue.x-k8s.io/pod-group-name",
    "leaderworkerset.sigs.k8s.io/group-key",
    "jobset.sigs.k8s.io/jobset-name",
    "pod-group-name",
];

/// The label of a node that usually has its name as value.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// Sources of PersistentVolumes whose data is on the node that uses them.
const ON_THE_NODE: [&str; 2] = ["hostPath", "local"];

/// The groups of a pod. `scheduling_group`: the name in `spec.schedulingGroup`, or empty.
pub fn pod_groups(scheduling_group: &str, labels: &Texts, annotations: &Texts) -> PodGroups {
    let native = (SCHEDULING_GROUP, scheduling_group);
    let marks = GROUP_MARKS.iter().filter_map(|mark| {
        let value = labels.get(*mark).or_else(|| annotations.get(*mark))?;
        Some((*mark, value.as_str()))
    });
    let named = [native].into_iter().chain(marks);
    named
        .filter(|(_, name)| !name.is_empty())
        .map(|(mark, name)| (mark, name.to_owned()))
        .collect()
}

/// The marks are constants. One that this version does not know is left out.
fn known_groups<'de, D: Deserializer<'de>>(from: D) -> Result<PodGroups, D::Error> {
    let groups = Vec::<(String, String)>::deserialize(from)?;
    let mark = |text: &str| {
        let mut known = [SCHEDULING_GROUP].into_iter().chain(GROUP_MARKS);
        known.find(|mark| *mark == text)
    };
    Ok(groups
        .into_iter()
        .filter_map(|(text, name)| Some((mark(&text)?, name)))
        .collect())
}

/// A map as a list of pairs, because JSON has only texts as keys.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer, K: Serialize, V: Serialize>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D, K, V>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        D: Deserializer<'de>,
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}

impl Owner {
    /// What a reference says of its object.
    pub fn bare(namespace: &str, reference: Controller) -> Self {
        Self {
            namespace: namespace.to_owned(),
            reference,
            labels: Texts::new(),
            annotations: Texts::new(),
            replicas: None,
            ready_replicas: None,
            strategy: String::new(),
            failures: None,
            controller: None,
        }
    }
}

impl Peer {
    /// A pod as a peer of others.
    pub fn of_pod(pod: &Pod, scheduling_group: &str) -> Self {
        Self {
            id: pod.id.clone(),
            node: pod.node.clone(),
            phase: pod.phase,
            ready: pod.ready,
            deletion: pod.deletion.map(|deletion| deletion.at),
            controller: pod.controller.as_ref().map(|controller| controller.uid.clone()),
            groups: pod_groups(scheduling_group, &pod.labels, &pod.annotations),
        }
    }
}

impl PeerSelection {
    /// Whether a pod of the namespace belongs, by its controller or its groups.
    pub fn includes(&self, peer: &Peer) -> bool {
        let controller = peer.controller.as_ref();
        controller.is_some_and(|controller| self.controllers.contains(controller))
            || peer.groups.iter().any(|group| self.groups.contains(group))
    }
}

impl DeviceSlice {
    /// The devices of all these slices. Of each pool only those of the latest generation count.
    pub fn together<'a>(slices: impl Iterator<Item = &'a Self> + Clone) -> BTreeMap<&'a DeviceId, &'a Texts> {
        let pool = |id: &'a DeviceId| (&id.driver, &id.pool);
        let mut latest = BTreeMap::new();
        for slice in slices.clone() {
            for id in slice.devices.keys() {
                let known = latest.entry(pool(id)).or_insert(slice.generation);
                *known = slice.generation.max(*known);
            }
        }
        let devices = slices.flat_map(|slice| slice.devices.iter().map(|device| (slice.generation, device)));
        let current = devices.filter(|(generation, (id, _))| latest.get(&pool(id)) == Some(generation));
        current.map(|(_, device)| device).collect()
    }
}

impl PersistentVolume {
    /// Whether only this node can use its data, given that this node can.
    pub fn is_local_to(&self, node: &str) -> bool {
        if ON_THE_NODE.contains(&self.kind.as_str()) {
            return true;
        }
        // CSI drivers have their own labels for the node's name.
        let pin = |(label, value): &&(String, String)| label == HOSTNAME || value == node;
        let mut pinned = self
            .pins
            .iter()
            .map(|pins| pins.iter().find(pin).map(|(_, value)| value));
        match pinned.next() {
            Some(Some(first)) => pinned.all(|other| other == Some(first)),
            _ => false,
        }
    }
}
