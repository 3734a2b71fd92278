//! The cluster in memory on which scenarios play, with what policies may ask about it. It must not know the expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_api::facts::{FactKind, FactObject, FactQuery, FactType as _, Metadata, Namespace, Peer};
use scupper_cluster_model::ClusterModel;
use scupper_common::clock::Clock;
use scupper_engine::{Budget, Node, Pod, Time, Trigger};

use super::fact_objects::FactObjects;
use super::mock_servers::MockServers;

/// The cluster.
#[derive(Debug)]
pub(super) struct MemoryCluster {
    pub(super) model: ClusterModel,
    /// Shows the time of the model: what policies may do per minute, they may in minutes of the drain.
    pub(super) clock: Clock,
    /// Pods on other nodes.
    pub(super) elsewhere: Vec<Pod>,
    /// What policies may ask about beyond these.
    pub(super) facts: FactObjects,
    /// The pods of budgets on all nodes, by namespace and name.
    pub(super) expected_pods: BTreeMap<(String, String), i32>,
    /// The LifecycleEvent that requested the drain.
    pub(super) event: Metadata,
    outage_until: Time,
    /// The Kubernetes Events of policies: `REASON of OBJECT: NOTE`.
    pub(super) emitted: Vec<String>,
    /// The servers that policies use.
    pub(super) answers: MockServers,
    /// Other pods on other nodes, as a policy had learned of them.
    pub(super) peers: Vec<Peer>,
    /// What policies have asked about and nothing was known of.
    pub(super) asked: BTreeSet<String>,
}

impl MemoryCluster {
    pub(super) fn new(now: Time, node: Node) -> Self {
        Self {
            model: ClusterModel::new(now, node),
            clock: Clock::simulated(now),
            elsewhere: Vec::new(),
            facts: FactObjects::default(),
            expected_pods: BTreeMap::new(),
            event: Metadata::default(),
            outage_until: Time::default(),
            emitted: Vec::new(),
            answers: MockServers::default(),
            peers: Vec::new(),
            asked: BTreeSet::new(),
        }
    }

    /// Advances the time.
    pub(super) fn advance(&mut self, to: Time) {
        self.model.advance(to);
        self.clock.set_simulated(self.model.now);
    }

    /// An existing pod of another node, by `namespace/name`.
    pub(super) fn elsewhere_mut(&mut self, name: &str) -> Option<&mut Pod> {
        self.elsewhere.iter_mut().find(|pod| pod.id.to_string() == name)
    }

    /// Deletes a pod of any node. `false`: it does not exist.
    pub(super) fn remove_pod(&mut self, name: &str) -> bool {
        let before = self.elsewhere.len();
        self.elsewhere.retain(|pod| pod.id.to_string() != name);
        self.elsewhere.len() < before || self.model.remove_pod(name)
    }

    /// The trigger of the drain: `other`, unless there are DrainRequests.
    pub(super) fn trigger_or(&self, other: &str) -> String {
        match self.facts.iter().any(is_drain_request) {
            true => Trigger::DrainRequest.name().to_owned(),
            false => other.to_owned(),
        }
    }

    /// Nothing requests a drain any more.
    pub(super) fn forget_drain_requests(&mut self) {
        self.facts.retain(|object| !is_drain_request(object));
    }

    /// The objects of a query.
    pub(super) fn answer(&mut self, query: &FactQuery) -> Vec<FactObject> {
        if !self.knows(&query.kind) {
            self.asked.insert(plural(&query.kind));
        }
        let current: Vec<FactObject> = match &query.kind {
            // Whatever its name.
            FactKind::LifecycleEvent => return vec![self.event.clone().into()],
            FactKind::Namespace => self.namespaces(),
            FactKind::Budget => self
                .model
                .budgets()
                .iter()
                .map(|budget| self.counted(budget).into())
                .collect(),
            FactKind::PodSpec { .. } => self.model.pods().map(|pod| self.facts.spec(pod).into()).collect(),
            FactKind::Peer => {
                let pods = self.model.pods().chain(&self.elsewhere);
                let mut peers: Vec<FactObject> = pods.map(|pod| self.facts.peer(pod).into()).collect();
                let is_other = |peer: &&Peer| peer.node != self.model.node.name;
                peers.extend(self.peers.iter().filter(is_other).cloned().map(FactObject::from));
                peers
            }
            _ => return self.facts.answer(query),
        };
        current.into_iter().filter(|object| query.wants(object)).collect()
    }

    /// Whether some object of this kind is known beyond what the drain watches.
    fn knows(&self, kind: &FactKind) -> bool {
        match kind {
            FactKind::Budget => true,
            FactKind::PodSpec { .. } => self.facts.has_specs(),
            FactKind::Peer => !self.elsewhere.is_empty() || !self.peers.is_empty(),
            kind => self.facts.iter().any(|object| object.is_of(kind)),
        }
    }

    /// Those that were named, and those that have or had pods. The API server gives each of them a label with its name.
    fn namespaces(&self) -> Vec<FactObject> {
        let named = self.facts.iter().filter_map(Namespace::of).cloned();
        let living = self.model.pods().map(|pod| &pod.id);
        let of_pods = living.chain(self.model.gone()).map(|pod| pod.namespace.clone());
        let of_pods = of_pods.map(|name| Namespace {
            metadata: Metadata {
                name,
                ..Metadata::default()
            },
        });
        let mut all = BTreeMap::new();
        for mut namespace in named.chain(of_pods) {
            let name = namespace.metadata.name.clone();
            let label = "kubernetes.io/metadata.name".to_owned();
            namespace.metadata.labels.insert(label, name.clone());
            all.entry(name).or_insert(namespace);
        }
        all.into_values().map(FactObject::from).collect()
    }

    /// A budget with the number of its pods.
    fn counted(&self, budget: &Budget) -> Budget {
        let here = self.model.pods().filter(|pod| budget.selects(pod)).count();
        let here = i32::try_from(here).unwrap_or(i32::MAX);
        let key = (budget.namespace.clone(), budget.name.clone());
        let elsewhere = self.expected_pods.get(&key).copied();
        Budget {
            expected_pods: elsewhere.unwrap_or_else(|| here.max(budget.current_healthy)),
            ..budget.clone()
        }
    }

    /// Policies cannot reach the API server for this long.
    pub(super) fn outage(&mut self, span: Duration) {
        self.outage_until = self.model.now + span;
    }

    /// Whether policies can reach the API server.
    pub(super) fn is_reachable(&self) -> bool {
        self.model.now >= self.outage_until
    }
}

const fn is_drain_request(object: &FactObject) -> bool {
    matches!(object, FactObject::DrainRequest(_))
}

/// What is asked for, in the words of the API.
fn plural(kind: &FactKind) -> String {
    let name = match kind {
        FactKind::Owner { api_version, kind } => return format!("{kind} objects ({api_version})"),
        FactKind::Budget => "PodDisruptionBudgets",
        FactKind::LifecycleEvent => "the LifecycleEvent",
        FactKind::DrainRequest => "DrainRequests",
        FactKind::Namespace => "labels of namespaces",
        FactKind::PodSpec { .. } => "specs of pods",
        FactKind::Peer => "pods on other nodes",
        FactKind::ResourceClaim => "ResourceClaims",
        FactKind::DeviceSlice { .. } => "ResourceSlices",
        FactKind::PersistentVolumeClaim => "PersistentVolumeClaims",
        FactKind::PersistentVolume => "PersistentVolumes",
        FactKind::VolumeAttachment => "VolumeAttachments",
    };
    name.to_owned()
}
