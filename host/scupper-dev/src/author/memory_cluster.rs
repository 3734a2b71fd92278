//! A cluster of one node, in memory and in simulated time: the API server, its controllers and the kubelet.
//!
//! It is far simpler than `host/simulator`, which speaks HTTP in real time: here a day takes a millisecond. It must not
//! know the expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use scupper_api::DrainRequestFields;
use scupper_engine::{
    Answer, Budget, Checkpoint, Controller, Deletion, Event, EvictAnswer, Node, Pod, PodRef, SurgePlan, Task,
    Time, Trigger, Uid,
};

use super::mock_servers::MockServers;
use super::pod_facts::PodFacts;
use scupper_policy::{BudgetFact, Marks, NamespaceFact, OwnerFact, PeerFact, PodSpecFact};

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
    pub(super) namespaces: BTreeMap<String, NamespaceFact>,
    /// Owners of pods, with their namespaces.
    pub(super) owners: Vec<(String, OwnerFact)>,
    /// Requests, devices and volumes of pods.
    pub(super) pod_facts: PodFacts,
    /// The pods of budgets on all nodes, by namespace and name.
    pub(super) expected_pods: BTreeMap<(String, String), i32>,
    /// The object that requested the drain.
    pub(super) request: Marks,
    /// The DrainRequests that requested it.
    pub(super) drain_requests: Vec<Arc<DrainRequestFields>>,
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
            namespaces: BTreeMap::new(),
            owners: Vec::new(),
            pod_facts: PodFacts::default(),
            expected_pods: BTreeMap::new(),
            request: Marks::default(),
            drain_requests: Vec::new(),
            due: Vec::new(),
            events: Vec::new(),
            version: 1,
            outage_until: Time::default(),
            emitted: Vec::new(),
            answers: MockServers::default(),
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
        match self.drain_requests[..] {
            [] => other.to_owned(),
            _ => Trigger::DrainRequest.name().to_owned(),
        }
    }

    pub(super) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values().map(|living| &living.pod)
    }

    /// An existing pod, by `namespace/name`.
    pub(super) fn pod(&self, name: &str) -> Option<&Pod> {
        self.pods().find(|pod| pod.id.to_string() == name)
    }

    /// A namespace that was named, or that has or had pods. The API server gives each of them a label with its name.
    pub(super) fn namespace(&self, name: &str) -> Option<NamespaceFact> {
        let living = self.pods().map(|pod| &pod.id);
        let mut pods = living.chain(self.gone.values());
        let known = self.namespaces.get(name).cloned();
        let mut namespace =
            known.or_else(|| pods.any(|pod| pod.namespace == name).then(NamespaceFact::default))?;
        let label = "kubernetes.io/metadata.name".to_owned();
        namespace.marks.labels.insert(label, name.to_owned());
        Some(namespace)
    }

    /// The budgets, as policies learn of them.
    pub(super) fn budget_facts(&self) -> Vec<BudgetFact> {
        let fact = |budget: &Budget| {
            let here = self.pods().filter(|pod| budget.selects(pod)).count();
            let here = i32::try_from(here).unwrap_or(i32::MAX);
            let key = (budget.namespace.clone(), budget.name.clone());
            let elsewhere = self.expected_pods.get(&key).copied();
            BudgetFact {
                expected_pods: elsewhere.unwrap_or_else(|| here.max(budget.current_healthy)),
                budget: budget.clone(),
            }
        };
        self.budgets.iter().map(fact).collect()
    }

    /// The owners of a namespace that are of the kind of this reference.
    pub(super) fn owners_like(&self, namespace: &str, like: &Controller) -> Vec<OwnerFact> {
        let is_like = |(of, owner): &&(String, OwnerFact)| {
            let reference = &owner.reference;
            of == namespace && reference.kind == like.kind && reference.api_version == like.api_version
        };
        self.owners
            .iter()
            .filter(is_like)
            .map(|(_, owner)| owner.clone())
            .collect()
    }

    /// What the specs of the existing pods say.
    pub(super) fn pod_specs(&self) -> BTreeMap<Uid, PodSpecFact> {
        let spec = |uid: &Uid| self.pod_facts.specs.get(uid).cloned().unwrap_or_default();
        let pods = self.pods.iter().map(|(uid, living)| {
            let spec = PodSpecFact {
                groups: self.pod_facts.groups(&living.pod),
                ..spec(uid)
            };
            (uid.clone(), spec)
        });
        pods.collect()
    }

    /// The pods of a namespace, here and on other nodes.
    pub(super) fn pods_of_namespace(&self, namespace: &str) -> Vec<PeerFact> {
        let all = self.pods().chain(&self.elsewhere);
        let here = all.filter(|pod| pod.id.namespace == namespace);
        here.map(|pod| self.pod_facts.peer(pod)).collect()
    }

    /// All namespaces.
    pub(super) fn all_namespaces(&self) -> BTreeMap<String, NamespaceFact> {
        let of_pods = self.pods().map(|pod| &pod.id.namespace);
        let names: BTreeSet<&String> = self.namespaces.keys().chain(of_pods).collect();
        let found = names
            .into_iter()
            .filter_map(|name| Some((name.clone(), self.namespace(name)?)));
        found.collect()
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
