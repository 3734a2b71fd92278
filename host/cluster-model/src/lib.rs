//! A cluster of one node, in memory and in simulated time: the API server, its controllers and the kubelet, as far as a
//! drain meets them. Scenarios of policies and forecasts play drains on it.
//!
//! It is far simpler than `host/simulator`, which speaks HTTP in real time: here a day takes a millisecond. It must not
//! know what policies ask about, nor what a scenario expects.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{
    Answer, Budget, Checkpoint, Deletion, Event, EvictAnswer, GoverningBudget, Node, Pod, PodRef,
    SelectorIndex, SurgePlan, Task, Time, Uid,
};

/// How long a pod takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodTimes {
    /// From the request that it leave until it has terminated, or until the end of its grace period.
    pub ends_after: Duration,
    /// When its budget counts another healthy pod instead.
    pub replaced: Replaced,
}

/// When another pod is ready elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// So long after the request that the pod leave, as the controller of a ReplicaSet does it.
    AfterRequest(Duration),
    /// So long after its end, as that of a StatefulSet does it.
    AfterEnd(Duration),
    /// It has no controller.
    Never,
}

impl Replaced {
    /// As the controller of this pod does it, which may wait for its end.
    pub const fn by_controller(pod: &Pod, waits_for_end: bool, after: Duration) -> Self {
        match &pod.controller {
            Some(_) if waits_for_end => Self::AfterEnd(after),
            Some(_) => Self::AfterRequest(after),
            None => Self::Never,
        }
    }
}

impl PodTimes {
    /// It ends after this time or, where that is not known, after a second; a second later it is replaced.
    pub fn ends_after(known: Option<Duration>) -> Self {
        let second = Duration::from_secs(1);
        Self {
            ends_after: known.unwrap_or(second),
            replaced: Replaced::AfterEnd(second),
        }
    }
}

/// The cluster.
#[derive(Clone, Debug)]
pub struct ClusterModel {
    /// What time it is.
    pub now: Time,
    /// The node.
    pub node: Node,
    /// A pod stays after its end until its finalizers are removed; else they are removed at once.
    pub keeps_finalizers: bool,
    budgets: Vec<Budget>,
    /// Their places, by what they select.
    index: SelectorIndex<usize>,
    pods: BTreeMap<Uid, PodState>,
    gone: BTreeMap<Uid, PodRef>,
    /// Scheduled events.
    due: Vec<(Time, TimedChange)>,
    /// Pending watch events, in order.
    events: Vec<Event>,
    /// Budgets of which pods were lost or came back.
    changed_budgets: Vec<Budget>,
    version: u64,
}

#[derive(Clone, Debug)]
struct PodState {
    pod: Pod,
    times: PodTimes,
    /// Its containers have ended, and finalizers keep it.
    has_ended: bool,
}

#[derive(Clone, Debug)]
enum TimedChange {
    /// The kubelet has ended the pod.
    Gone(Uid),
    /// Another pod of the budget is ready.
    Recovers { namespace: String, name: String },
}

impl ClusterModel {
    /// With this node, and nothing on it.
    pub fn new(now: Time, node: Node) -> Self {
        Self {
            now,
            node,
            keeps_finalizers: false,
            budgets: Vec::new(),
            index: SelectorIndex::default(),
            pods: BTreeMap::new(),
            gone: BTreeMap::new(),
            due: Vec::new(),
            events: Vec::new(),
            changed_budgets: Vec::new(),
            version: 1,
        }
    }

    /// The whole state, as a watch begins with it.
    pub fn beginning(&mut self) -> Vec<Event> {
        self.events.clear();
        vec![
            Event::Node(Some(self.seen_node())),
            Event::Pods(self.pods().cloned().collect()),
            Event::Budgets(self.budgets.clone()),
        ]
    }

    /// The changes since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The budgets that pods of this node have changed since the last call, as they were then.
    pub fn take_changed_budgets(&mut self) -> Vec<Budget> {
        std::mem::take(&mut self.changed_budgets)
    }

    /// The time of the next scheduled event.
    pub fn next_due(&self) -> Option<Time> {
        self.due.iter().map(|(at, _)| *at).min()
    }

    /// Advances the time.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        let (due, later) = std::mem::take(&mut self.due)
            .into_iter()
            .partition(|(at, _)| *at <= self.now);
        self.due = later;
        let mut due: Vec<(Time, TimedChange)> = due;
        due.sort_by_key(|(at, _)| *at);
        for (_, due) in due {
            match due {
                TimedChange::Gone(uid) => self.end_containers(&uid),
                TimedChange::Recovers { namespace, name } => self.recover(&namespace, &name),
            }
        }
    }

    /// The node as the API shows it now.
    pub fn seen_node(&self) -> Node {
        Node {
            cancel: None,
            resource_version: self.version.to_string(),
            ..self.node.clone()
        }
    }

    /// The pods on the node.
    pub fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values().map(|living| &living.pod)
    }

    /// An existing pod, by `namespace/name`.
    pub fn pod(&self, name: &str) -> Option<&Pod> {
        self.pods().find(|pod| pod.id.to_string() == name)
    }

    /// The name of an existing or former pod.
    pub fn name_of(&self, uid: &Uid) -> String {
        let living = self.pods.get(uid).map(|living| &living.pod.id);
        living
            .or_else(|| self.gone.get(uid))
            .map_or_else(|| uid.to_string(), PodRef::to_string)
    }

    /// A UID that no pod of this name has had.
    pub fn fresh_uid(&self, name: &str) -> String {
        let named = |pod: &&PodRef| pod.to_string() == name;
        let before = self.gone.values().filter(named).count();
        match before {
            0 => format!("uid-of-{}", name.replace('/', "-")),
            again => format!("uid-of-{}-{again}", name.replace('/', "-")),
        }
    }

    /// The pods that were on it and have ended.
    pub fn gone(&self) -> impl Iterator<Item = &PodRef> {
        self.gone.values()
    }

    /// Adds a pod, or replaces the one with its UID.
    pub fn add_pod(&mut self, pod: Pod, times: PodTimes) {
        self.events.push(Event::PodApplied(pod.clone()));
        let state = PodState {
            pod,
            times,
            has_ended: false,
        };
        self.pods.insert(state.pod.id.uid.clone(), state);
    }

    /// A pod that is terminating already ends at this time.
    pub fn ends_at(&mut self, uid: &Uid, at: Time) {
        self.due.push((at, TimedChange::Gone(uid.clone())));
    }

    /// Another pod is ready instead of this one at this time. One that has ended by itself is not replaced.
    pub fn replaced_at(&mut self, pod: &Pod, at: Time) {
        if pod.is_finished() {
            return;
        }
        let recovers = |budget: &Budget| TimedChange::Recovers {
            namespace: budget.namespace.clone(),
            name: budget.name.clone(),
        };
        let recovering: Vec<_> = self.selecting(pod).map(recovers).collect();
        self.due.extend(recovering.into_iter().map(|change| (at, change)));
    }

    /// The budgets.
    pub fn budgets(&self) -> &[Budget] {
        &self.budgets
    }

    fn selecting<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a Budget> {
        let candidates = self.index.candidates(&pod.id.namespace, &pod.labels);
        let candidates = candidates.filter_map(|place| self.budgets.get(*place));
        candidates.filter(|budget| budget.selects(pod))
    }

    /// Changes an existing pod, and where given the time until it ends. `false`: there is none of this name.
    pub fn change_pod<E>(
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
        living.times.ends_after = ends_after.unwrap_or(living.times.ends_after);
        self.events.push(Event::PodApplied(living.pod.clone()));
        if living.has_ended && !is_kept(&living.pod) {
            let uid = living.pod.id.uid.clone();
            self.end(&uid);
        }
        Ok(true)
    }

    /// Deletes a pod. `false`: it does not exist.
    pub fn remove_pod(&mut self, name: &str) -> bool {
        let uid = self.pod(name).map(|pod| pod.id.uid.clone());
        if let Some(uid) = &uid {
            self.end(uid);
        }
        uid.is_some()
    }

    /// Changes the node, and returns its new version.
    pub fn change_node(&mut self, change: impl FnOnce(&mut Node)) -> String {
        change(&mut self.node);
        self.version += 1;
        self.events.push(Event::Node(Some(self.seen_node())));
        self.version.to_string()
    }

    /// Adds a budget, or replaces the one of its name.
    pub fn set_budget(&mut self, budget: Budget) {
        self.events.push(Event::BudgetApplied(budget.clone()));
        let is_named = |other: &&mut Budget| other.name == budget.name && other.namespace == budget.namespace;
        match self.budgets.iter_mut().find(is_named) {
            Some(known) if known.selector == budget.selector => *known = budget,
            Some(known) => {
                *known = budget;
                self.index = SelectorIndex::default();
                (0..self.budgets.len()).for_each(|place| self.note_selector(place));
            }
            None => {
                self.budgets.push(budget);
                self.note_selector(self.budgets.len() - 1);
            }
        }
    }

    fn note_selector(&mut self, place: usize) {
        if let Some(budget) = self.budgets.get(place) {
            self.index
                .insert(&budget.namespace, &budget.selector.labels, place);
        }
    }

    /// Performs the engine's task.
    pub fn carry_out(&mut self, task: &Task) -> Answer {
        match task {
            Task::Evict { pod, grace_seconds } => Answer::Evict(self.evict(pod, *grace_seconds)),
            Task::Delete { pod, grace_seconds } => Answer::Evict(self.delete(pod, *grace_seconds)),
            Task::ListPods => Answer::Pods(self.pods().cloned().collect()),
            Task::ListVolumes => Answer::Volumes(Vec::new()),
            Task::ChooseSurges { .. } => Answer::Surges(SurgePlan::default()),
            Task::Surge { .. } | Task::TakeBack { .. } => Answer::Rejected {
                message: "there are no Deployments that could be restarted".to_owned(),
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
        match GoverningBudget::of(&living.pod, self.selecting(&living.pod)) {
            GoverningBudget::One(budget) if budget.disruptions_allowed <= 0 => EvictAnswer::BudgetExhausted {
                budget: budget.name.clone(),
                message: format!(
                    "The disruption budget {} allows none of its pods to go now",
                    budget.name
                ),
            },
            GoverningBudget::Several(..) => EvictAnswer::MoreThanOneBudget {
                message: "This pod has more than one PodDisruptionBudget".to_owned(),
            },
            GoverningBudget::None | GoverningBudget::One(_) => self.delete(pod, grace),
        }
    }

    fn delete(&mut self, pod: &PodRef, grace: Option<u64>) -> EvictAnswer {
        let now = self.now;
        let Some(living) = self.pods.get_mut(&pod.uid) else {
            return self.absent(pod);
        };
        let grace_seconds = grace.unwrap_or(living.pod.grace_seconds);
        let at = now + Duration::from_secs(grace_seconds);
        let before = living.pod.deletion.as_ref().map(|deletion| deletion.at);
        // A grace period that runs can only be shortened.
        if before.is_some_and(|before| before <= at) {
            return EvictAnswer::Accepted;
        }
        let as_it_was = living.pod.clone();
        living.pod.deletion = Some(Deletion { at, grace_seconds });
        self.events.push(Event::PodApplied(living.pod.clone()));
        let times = living.times;
        if before.is_some() {
            self.ends_no_later(&pod.uid, at);
        } else {
            let ends = (now + times.ends_after).min(at);
            self.ends_at(&pod.uid, ends);
            self.lose(&as_it_was);
            if let Replaced::AfterRequest(after) = times.replaced {
                self.replaced_at(&as_it_was, now + after);
            }
        }
        EvictAnswer::Accepted
    }

    fn ends_no_later(&mut self, uid: &Uid, at: Time) {
        for (due, change) in &mut self.due {
            if matches!(change, TimedChange::Gone(other) if other == uid) {
                *due = at.min(*due);
            }
        }
    }

    /// Its budgets count a terminating pod no more.
    fn lose(&mut self, pod: &Pod) {
        if !pod.ready {
            return;
        }
        for place in self.index.candidates(&pod.id.namespace, &pod.labels) {
            let budget = self.budgets.get_mut(*place);
            let Some(budget) = budget.filter(|budget| budget.selects(pod)) else {
                continue;
            };
            budget.current_healthy -= 1;
            budget.disruptions_allowed = (budget.disruptions_allowed - 1).max(0);
            self.events.push(Event::BudgetApplied(budget.clone()));
            self.changed_budgets.push(budget.clone());
        }
    }

    fn absent(&self, pod: &PodRef) -> EvictAnswer {
        match self.pod(&pod.to_string()) {
            Some(_) => EvictAnswer::UidMismatch {
                message: "the UID in the precondition is of another pod".to_owned(),
            },
            None => EvictAnswer::NotFound,
        }
    }

    fn end_containers(&mut self, uid: &Uid) {
        match self.pods.get_mut(uid) {
            Some(living) if self.keeps_finalizers && is_kept(&living.pod) => {
                living.has_ended = true;
                living.pod.ready = false;
                self.events.push(Event::PodApplied(living.pod.clone()));
            }
            _ => self.end(uid),
        }
    }

    fn end(&mut self, uid: &Uid) {
        if let Some(living) = self.pods.remove(uid) {
            self.gone.insert(uid.clone(), living.pod.id.clone());
            self.events.push(Event::PodDeleted(uid.clone()));
            if let (Replaced::AfterEnd(after), Some(_)) = (living.times.replaced, &living.pod.deletion) {
                self.replaced_at(&living.pod, self.now + after);
            }
        }
    }

    fn recover(&mut self, namespace: &str, name: &str) {
        let this = |budget: &&mut Budget| budget.namespace == namespace && budget.name == name;
        // It has all of its pods already where more is replaced than it had lost.
        let lacks = |budget: &&mut Budget| budget.current_healthy < budget.expected_pods;
        if let Some(budget) = self.budgets.iter_mut().find(this).filter(lacks) {
            budget.current_healthy += 1;
            if budget.current_healthy > budget.desired_healthy {
                budget.disruptions_allowed += 1;
            }
            self.events.push(Event::BudgetApplied(budget.clone()));
            self.changed_budgets.push(budget.clone());
        }
    }
}

/// Somebody must remove a finalizer before it is gone.
fn is_kept(pod: &Pod) -> bool {
    pod.lasting_finalizers().next().is_some()
}
