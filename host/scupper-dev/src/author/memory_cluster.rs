//! A cluster of one node, in memory and in simulated time: the API server, its controllers and the kubelet.
//!
//! It is far simpler than `host/simulator`, which speaks HTTP in real time: here a day takes a millisecond. It must not
//! know the expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_api::facts::{FactKind, FactObject, FactQuery, FactType as _, Metadata, Namespace, Peer};
use scupper_engine::{
    Answer, Budget, Checkpoint, Deletion, Event, EvictAnswer, Node, Pod, PodRef, SurgePlan, Task, Time,
    Trigger, Uid,
};

use super::fact_objects::FactObjects;
use super::mock_servers::MockServers;

/// The default time until a pod has terminated.
const ENDS_AFTER: Duration = Duration::from_secs(1);
/// The time until its controller has a replacement ready elsewhere, which the budget counts again.
const REPLACED_AFTER: Duration = Duration::from_secs(1);

/// The cluster.
#[derive(Debug)]
pub(super) struct MemoryCluster {
    pub(super) now: Time,
    pub(super) node: Node,
    pods: BTreeMap<Uid, PodState>,
    gone: BTreeMap<Uid, PodRef>,
    /// Pods on other nodes.
    pub(super) elsewhere: Vec<Pod>,
    pub(super) budgets: Vec<Budget>,
    /// What policies may ask about beyond these.
    pub(super) facts: FactObjects,
    /// The pods of budgets on all nodes, by namespace and name.
    pub(super) expected_pods: BTreeMap<(String, String), i32>,
    /// The LifecycleEvent that requested the drain.
    pub(super) event: Metadata,
    /// Scheduled events.
    due: Vec<(Time, TimedChange)>,
    /// Pending watch events, in order.
    events: Vec<Event>,
    version: u64,
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

#[derive(Debug)]
struct PodState {
    pod: Pod,
    ends_after: Duration,
}

#[derive(Debug)]
enum TimedChange {
    /// The kubelet has ended the pod.
    Gone(Uid),
    /// Another pod of the budget is ready.
    Recovers { namespace: String, name: String },
}

impl MemoryCluster {
    pub(super) fn new(now: Time, node: Node) -> Self {
        Self {
            now,
            node,
            pods: BTreeMap::new(),
            gone: BTreeMap::new(),
            elsewhere: Vec::new(),
            budgets: Vec::new(),
            facts: FactObjects::default(),
            expected_pods: BTreeMap::new(),
            event: Metadata::default(),
            due: Vec::new(),
            events: Vec::new(),
            version: 1,
            outage_until: Time::default(),
            emitted: Vec::new(),
            answers: MockServers::default(),
            peers: Vec::new(),
            asked: BTreeSet::new(),
        }
    }

    /// The whole state, as a watch begins with it.
    pub(super) fn beginning(&mut self) -> Vec<Event> {
        self.events.clear();
        vec![
            Event::Node(Some(self.seen_node())),
            Event::Pods(self.pods().cloned().collect()),
            Event::Budgets(self.budgets.clone()),
        ]
    }

    /// The changes since the last call.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The time of the next scheduled event.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.iter().map(|(at, _)| *at).min()
    }

    /// Advances the time.
    pub(super) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        let (due, later) = std::mem::take(&mut self.due)
            .into_iter()
            .partition(|(at, _)| *at <= self.now);
        self.due = later;
        let mut due: Vec<(Time, TimedChange)> = due;
        due.sort_by_key(|(at, _)| *at);
        for (_, due) in due {
            match due {
                TimedChange::Gone(uid) => self.end(&uid),
                TimedChange::Recovers { namespace, name } => self.recover(&namespace, &name),
            }
        }
    }

    /// The node as the API shows it now.
    pub(super) fn seen_node(&self) -> Node {
        Node {
            cancel: None,
            resource_version: self.version.to_string(),
            ..self.node.clone()
        }
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

    pub(super) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values().map(|living| &living.pod)
    }

    /// An existing pod, by `namespace/name`.
    pub(super) fn pod(&self, name: &str) -> Option<&Pod> {
        self.pods().find(|pod| pod.id.to_string() == name)
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
                .budgets
                .iter()
                .map(|budget| self.counted(budget).into())
                .collect(),
            FactKind::PodSpec { .. } => self.pods().map(|pod| self.facts.spec(pod).into()).collect(),
            FactKind::Peer => {
                let pods = self.pods().chain(&self.elsewhere);
                let mut peers: Vec<FactObject> = pods.map(|pod| self.facts.peer(pod).into()).collect();
                let is_other = |peer: &&Peer| peer.node != self.node.name;
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
        let living = self.pods().map(|pod| &pod.id);
        let of_pods = living.chain(self.gone.values()).map(|pod| pod.namespace.clone());
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
        let here = self.pods().filter(|pod| budget.selects(pod)).count();
        let here = i32::try_from(here).unwrap_or(i32::MAX);
        let key = (budget.namespace.clone(), budget.name.clone());
        let elsewhere = self.expected_pods.get(&key).copied();
        Budget {
            expected_pods: elsewhere.unwrap_or_else(|| here.max(budget.current_healthy)),
            ..budget.clone()
        }
    }

    /// The name of an existing or former pod.
    pub(super) fn name_of(&self, uid: &Uid) -> String {
        let living = self.pods.get(uid).map(|living| &living.pod.id);
        living
            .or_else(|| self.gone.get(uid))
            .map_or_else(|| uid.to_string(), PodRef::to_string)
    }

    /// A UID that no pod of this name has had.
    pub(super) fn fresh_uid(&self, name: &str) -> String {
        let named = |pod: &&PodRef| pod.to_string() == name;
        let before = self.gone.values().filter(named).count();
        match before {
            0 => format!("uid-of-{}", name.replace('/', "-")),
            again => format!("uid-of-{}-{again}", name.replace('/', "-")),
        }
    }

    pub(super) fn add_pod(&mut self, pod: Pod, ends_after: Option<Duration>) {
        self.events.push(Event::PodApplied(pod.clone()));
        let ends_after = ends_after.unwrap_or(ENDS_AFTER);
        self.pods.insert(pod.id.uid.clone(), PodState { pod, ends_after });
    }

    /// Changes an existing pod.
    pub(super) fn change_pod<E>(
        &mut self,
        name: &str,
        ends_after: Option<Duration>,
        change: impl FnOnce(&mut Pod) -> Result<(), E>,
    ) -> Result<bool, E> {
        let named = |living: &&mut PodState| living.pod.id.to_string() == name;
        let Some(living) = self.pods.values_mut().find(named) else {
            return Ok(false);
        };
        change(&mut living.pod)?;
        living.ends_after = ends_after.unwrap_or(living.ends_after);
        self.events.push(Event::PodApplied(living.pod.clone()));
        Ok(true)
    }

    /// Deletes a pod. `false`: it does not exist.
    pub(super) fn remove_pod(&mut self, name: &str) -> bool {
        let uid = self.pod(name).map(|pod| pod.id.uid.clone());
        if let Some(uid) = &uid {
            self.end(uid);
        }
        uid.is_some()
    }

    pub(super) fn change_node(&mut self, change: impl FnOnce(&mut Node)) -> String {
        change(&mut self.node);
        self.version += 1;
        self.events.push(Event::Node(Some(self.seen_node())));
        self.version.to_string()
    }

    pub(super) fn set_budget(&mut self, budget: Budget) {
        self.budgets
            .retain(|other| (&other.namespace, &other.name) != (&budget.namespace, &budget.name));
        self.events.push(Event::BudgetApplied(budget.clone()));
        self.budgets.push(budget);
    }

    /// Policies cannot reach the API server for this long.
    pub(super) fn outage(&mut self, span: Duration) {
        self.outage_until = self.now + span;
    }

    /// Whether policies can reach the API server.
    pub(super) fn is_reachable(&self) -> bool {
        self.now >= self.outage_until
    }

    /// Performs the engine's task.
    pub(super) fn carry_out(&mut self, task: &Task) -> Answer {
        match task {
            Task::Evict { pod, grace_seconds } => Answer::Evict(self.evict(pod, *grace_seconds)),
            Task::Delete { pod, grace_seconds } => Answer::Evict(self.delete(pod, *grace_seconds)),
            Task::ListPods => Answer::Pods(self.pods().cloned().collect()),
            Task::ListVolumes => Answer::Volumes(Vec::new()),
            Task::ChooseSurges { .. } => Answer::Surges(SurgePlan::default()),
            Task::Surge { .. } | Task::TakeBack { .. } => Answer::Rejected {
                message: "scenarios have no Deployments that could be restarted".to_owned(),
            },
            Task::Cordon {
                checkpoint, version, ..
            } => self.write(Some(version), |node| {
                node.unschedulable = true;
                node.checkpoint = Some(checkpoint.clone());
            }),
            Task::Save { checkpoint, .. } => {
                self.write(None, |node| node.checkpoint = Some(checkpoint.clone()))
            }
            Task::Uncordon {
                checkpoint, version, ..
            } => self.write(Some(version), |node| {
                node.unschedulable = false;
                node.checkpoint.clone_from(checkpoint);
            }),
            Task::Forget { .. } => self.write(None, |node| node.checkpoint = None::<Checkpoint>),
            Task::Plan { .. } | Task::Step { .. } => Answer::Rejected {
                message: "this is for the policies".to_owned(),
            },
        }
    }

    fn write(&mut self, on: Option<&str>, change: impl FnOnce(&mut Node)) -> Answer {
        if on.is_some_and(|version| version != self.version.to_string()) {
            return Answer::WriteConflict;
        }
        Answer::Written {
            version: self.change_node(change),
        }
    }

    fn evict(&mut self, pod: &PodRef, grace: Option<u64>) -> EvictAnswer {
        let Some(living) = self.pods.get(&pod.uid) else {
            return self.absent(pod);
        };
        if living.pod.deletion.is_some() {
            return EvictAnswer::Accepted;
        }
        let selecting = |budget: &&mut Budget| budget.selects(&living.pod);
        let mut budgets: Vec<&mut Budget> = self.budgets.iter_mut().filter(selecting).collect();
        let recovers = match &mut budgets[..] {
            [] => None,
            [budget] if budget.disruptions_allowed > 0 || !living.pod.ready => {
                if living.pod.ready {
                    budget.disruptions_allowed -= 1;
                }
                self.events.push(Event::BudgetApplied(budget.clone()));
                living.pod.ready.then(|| TimedChange::Recovers {
                    namespace: budget.namespace.clone(),
                    name: budget.name.clone(),
                })
            }
            [budget] => {
                return EvictAnswer::BudgetExhausted {
                    budget: budget.name.clone(),
                    message: format!(
                        "The disruption budget {} allows none of its pods to go now",
                        budget.name
                    ),
                };
            }
            _ => {
                return EvictAnswer::MoreThanOneBudget {
                    message: "This pod has more than one PodDisruptionBudget".to_owned(),
                };
            }
        };
        let answer = self.delete(pod, grace);
        if let (Some(recovers), Some(gone)) = (recovers, self.ends(&pod.uid)) {
            self.due.push((gone + REPLACED_AFTER, recovers));
        }
        answer
    }

    fn delete(&mut self, pod: &PodRef, grace: Option<u64>) -> EvictAnswer {
        let now = self.now;
        let Some(living) = self.pods.get_mut(&pod.uid) else {
            return self.absent(pod);
        };
        if living.pod.deletion.is_none() {
            let grace_seconds = grace.unwrap_or(living.pod.grace_seconds);
            let at = now + Duration::from_secs(grace_seconds);
            living.pod.deletion = Some(Deletion { at, grace_seconds });
            self.events.push(Event::PodApplied(living.pod.clone()));
            self.due.push((
                (now + living.ends_after).min(at),
                TimedChange::Gone(pod.uid.clone()),
            ));
        }
        EvictAnswer::Accepted
    }

    fn ends(&self, uid: &Uid) -> Option<Time> {
        let this = |due: &&(Time, TimedChange)| matches!(&due.1, TimedChange::Gone(other) if other == uid);
        self.due.iter().find(this).map(|(at, _)| *at)
    }

    fn absent(&self, pod: &PodRef) -> EvictAnswer {
        match self.pod(&pod.to_string()) {
            Some(_) => EvictAnswer::UidMismatch {
                message: "the UID in the precondition is of another pod".to_owned(),
            },
            None => EvictAnswer::NotFound,
        }
    }

    fn end(&mut self, uid: &Uid) {
        if let Some(living) = self.pods.remove(uid) {
            self.gone.insert(uid.clone(), living.pod.id);
            self.events.push(Event::PodDeleted(uid.clone()));
        }
    }

    fn recover(&mut self, namespace: &str, name: &str) {
        let this = |budget: &&mut Budget| budget.namespace == namespace && budget.name == name;
        if let Some(budget) = self.budgets.iter_mut().find(this) {
            budget.disruptions_allowed += 1;
            self.events.push(Event::BudgetApplied(budget.clone()));
        }
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
