//! What the host in memory answers to [`facts`](crate::facts).

use super::{Host, state};
use crate::PodPhase;
use crate::facts::{
    Budget, Device, DeviceSource, DisruptionAction, DrainRequest, Entity, Job, Namespace, Owner, Peer,
    PeerGroup, ResourceRequest, Resources, UnhealthyPodEvictionPolicy, Volume, VolumeClaim,
};

/// A namespace without labels and annotations.
pub fn namespace(name: &str) -> Namespace {
    Namespace {
        name: name.to_owned(),
        labels: Vec::new(),
        annotations: Vec::new(),
        deletion_timestamp: None,
    }
}

/// A budget over these pods (`namespace/name`), all of them healthy. It allows as many evictions as it has pods beyond
/// `needs`.
///
/// # Panics
/// If a name is not `namespace/name`.
pub fn budget(full_name: &str, needs: u32, pods: &[&str]) -> Budget {
    let pods: Vec<_> = pods.iter().map(|full_name| super::pod(full_name).uid).collect();
    let (namespace, name) = full_name.split_once('/').unwrap_or_default();
    assert!(
        !namespace.is_empty() && !name.is_empty(),
        "`{full_name}` is not namespace/name"
    );
    let count = u32::try_from(pods.len()).unwrap_or(u32::MAX);
    Budget {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        pods,
        expected_pods: count,
        desired_healthy: needs,
        current_healthy: count,
        disruptions_allowed: count.saturating_sub(needs),
        unhealthy_pod_eviction_policy: UnhealthyPodEvictionPolicy::IfHealthyBudget,
        observed: true,
    }
}

/// An owner of this kind with so many replicas, all of them ready.
pub fn owner(api_version: &str, kind: &str, name: &str, replicas: u32) -> Owner {
    Owner {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: format!("uid-of-{kind}-{name}"),
        labels: Vec::new(),
        annotations: Vec::new(),
        replicas: Some(replicas),
        ready_replicas: Some(replicas),
        strategy: String::new(),
    }
}

/// A Job that bears so many failures, of which there were none.
pub fn job(name: &str, backoff_limit: u32) -> Job {
    Job {
        name: name.to_owned(),
        failed: 0,
        backoff_limit,
        backoff_limit_per_index: None,
        on_disruption: DisruptionAction::Count,
    }
}

/// A DrainRequest with this action, such as `COMPONENT_RESET`, that names no entities.
pub fn drain_request(name: &str, recommended_action: &str) -> DrainRequest {
    DrainRequest {
        namespace: "nvsentinel".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        labels: Vec::new(),
        annotations: Vec::new(),
        creation_timestamp: None,
        check_name: String::new(),
        error_codes: Vec::new(),
        recommended_action: recommended_action.to_owned(),
        health_event_id: String::new(),
        reason: String::new(),
        entities_impacted: Vec::new(),
        metadata: Vec::new(),
        pods_to_drain: Vec::new(),
    }
}

/// No requests and no devices.
pub const fn resources() -> Resources {
    Resources {
        requests: Vec::new(),
        devices: Vec::new(),
        unallocated_claims: Vec::new(),
    }
}

impl Resources {
    /// Adds a request: thousandths of `cpu`, whole units of everything else.
    #[must_use]
    pub fn with_request(mut self, name: &str, amount: u64) -> Self {
        let name = name.to_owned();
        self.requests.push(ResourceRequest { name, amount });
        self
    }

    /// Adds a device that an annotation names.
    #[must_use]
    pub fn with_device(mut self, driver: &str, name: &str) -> Self {
        self.devices.push(Device {
            source: DeviceSource::Annotation("example.com/devices".to_owned()),
            driver: driver.to_owned(),
            pool: String::new(),
            name: name.to_owned(),
            admin_access: false,
            attributes: Vec::new(),
        });
        self
    }

    /// Adds a device of a ResourceClaim, with its attributes.
    #[must_use]
    pub fn with_claimed(
        mut self,
        claim: &str,
        driver: &str,
        name: &str,
        attributes: &[(&str, &str)],
    ) -> Self {
        self = self.with_device(driver, name);
        if let Some(device) = self.devices.last_mut() {
            device.source = DeviceSource::ResourceClaim(claim.to_owned());
            for (key, value) in attributes {
                state::set(&mut device.attributes, key, value);
            }
        }
        self
    }

    /// Adds a device of the ResourceClaim that the scheduler made for requests of the pod, with its attributes.
    #[must_use]
    pub fn with_extended_claim(mut self, driver: &str, name: &str, attributes: &[(&str, &str)]) -> Self {
        let claim = "extended-resources";
        self = self.with_claimed(claim, driver, name, attributes);
        if let Some(device) = self.devices.last_mut() {
            device.source = DeviceSource::ExtendedResourceClaim(claim.to_owned());
        }
        self
    }
}

impl DrainRequest {
    /// Adds an entity.
    #[must_use]
    pub fn with_entity(mut self, entity_type: &str, value: &str) -> Self {
        self.entities_impacted.push(Entity {
            type_: entity_type.to_owned(),
            value: value.to_owned(),
        });
        self
    }
}

/// A running, ready pod on the node `node`, for [`Host::group_peers`] and [`Host::controller_peers`].
pub fn peer(name: &str, node: &str) -> Peer {
    Peer {
        uid: format!("uid-of-{name}"),
        name: name.to_owned(),
        node: node.to_owned(),
        phase: PodPhase::Running,
        ready: true,
        deletion_timestamp: None,
    }
}

/// These pods (`namespace/name`) of the node and others belong together.
fn peer_group(name: &str, pods: &[&str], others: impl IntoIterator<Item = Peer>) -> PeerGroup {
    PeerGroup {
        name: name.to_owned(),
        pods: pods.iter().map(|full_name| super::pod(full_name).uid).collect(),
        others: others.into_iter().collect(),
    }
}

/// A volume with a source of this kind, such as `emptyDir`. `csi`, `emptyDir` and `hostPath` are node-local.
pub fn volume(name: &str, kind: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        kind: kind.to_owned(),
        node_local: matches!(kind, "csi" | "emptyDir" | "hostPath"),
        claim: None,
    }
}

impl Volume {
    /// Gives it a claim for one node at a time, bound to a volume of a CSI driver that is attached to these nodes.
    #[must_use]
    pub fn with_claim(mut self, name: &str, attached_to: &[&str]) -> Self {
        self.claim = Some(VolumeClaim {
            name: name.to_owned(),
            volume: format!("pv-of-{name}"),
            kind: "csi".to_owned(),
            storage_class: "standard".to_owned(),
            access_modes: vec!["ReadWriteOnce".to_owned()],
            attached_to: attached_to.iter().map(|node| (*node).to_owned()).collect(),
        });
        self
    }

    /// Only this node can use it.
    #[must_use]
    pub const fn on_this_node(mut self) -> Self {
        self.node_local = true;
        self
    }
}

impl Namespace {
    /// Sets a label.
    #[must_use]
    pub fn with_label(mut self, key: &str, value: &str) -> Self {
        state::set(&mut self.labels, key, value);
        self
    }

    /// Sets an annotation.
    #[must_use]
    pub fn with_annotation(mut self, key: &str, value: &str) -> Self {
        state::set(&mut self.annotations, key, value);
        self
    }
}

impl Host {
    /// Sets the namespaces. Those of the pods exist in any case.
    pub fn namespaces(&self, namespaces: impl IntoIterator<Item = Namespace>) {
        state::with(|state| state.namespaces = namespaces.into_iter().collect());
    }

    /// Sets the disruption budgets.
    pub fn budgets(&self, budgets: impl IntoIterator<Item = Budget>) {
        let budgets = budgets.into_iter().collect();
        state::with(|state| state.budgets = budgets);
    }

    /// Sets the Job of a pod (`namespace/name`). Without this it is gone.
    pub fn job(&self, pod: &str, job: Job) {
        let uid = super::pod(pod).uid;
        state::with(|state| state.jobs.insert(uid, job));
    }

    /// Sets the owners of a pod (`namespace/name`), from its controller upwards. Without this a pod has the one that it
    /// names itself.
    pub fn owners(&self, pod: &str, owners: impl IntoIterator<Item = Owner>) {
        let uid = super::pod(pod).uid;
        let owners = owners.into_iter().collect();
        state::with(|state| state.owners.insert(uid, owners));
    }

    /// Sets what a pod (`namespace/name`) requests and has. Without this it requests nothing.
    pub fn resources(&self, pod: &str, resources: Resources) {
        let uid = super::pod(pod).uid;
        state::with(|state| state.resources.insert(uid, resources));
    }

    /// The drain is for these DrainRequests.
    pub fn drain_requests(&self, requests: impl IntoIterator<Item = DrainRequest>) {
        let requests = requests.into_iter().collect();
        state::with(|state| {
            state.drain.trigger = "DrainRequest".to_owned();
            state.drain_requests = requests;
        });
    }

    /// Sets the volumes of a pod (`namespace/name`). Without this it has none.
    pub fn volumes(&self, pod: &str, volumes: impl IntoIterator<Item = Volume>) {
        let uid = super::pod(pod).uid;
        let volumes = volumes.into_iter().collect();
        state::with(|state| state.volumes.insert(uid, volumes));
    }

    /// Sets a scheduling group: some pods (`namespace/name`) of the node, and others. Without this there are none.
    pub fn group_peers(&self, name: &str, pods: &[&str], others: impl IntoIterator<Item = Peer>) {
        let group = peer_group(name, pods, others);
        state::with(|state| {
            state.group_peers.retain(|other| other.name != name);
            state.group_peers.push(group);
        });
    }

    /// Sets the pods of a controller: some (`namespace/name`) of the node, and others. Without this there are none.
    pub fn controller_peers(&self, name: &str, pods: &[&str], others: impl IntoIterator<Item = Peer>) {
        let group = peer_group(name, pods, others);
        state::with(|state| {
            state.controller_peers.retain(|other| other.name != name);
            state.controller_peers.push(group);
        });
    }

    /// Sets a label of the object that requested the drain.
    pub fn label_request(&self, key: &str, value: &str) {
        state::with(|state| state::set(&mut state.request_labels, key, value));
    }

    /// Sets an annotation of the object that requested the drain.
    pub fn annotate_request(&self, key: &str, value: &str) {
        state::with(|state| state::set(&mut state.request_annotations, key, value));
    }
}
