//! A namespace as it was read: its pods and what owns them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::surge::Rollout;
use scupper_engine::{Budget, Pod, Selector, Uid};

/// Labels that controllers add to the labels of their pod template.
const ADDED_LABELS: &[&str] = &[
    "pod-template-hash",
    "controller-revision-hash",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/job-completion-index",
    "controller-uid",
    "job-name",
    "pod-template-generation",
];

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceState {
    pub(super) terminating: bool,
    pub(super) pods: Vec<Pod>,
    owners: BTreeMap<Uid, Owner>,
    /// How many living pods each workload has.
    alive: BTreeMap<Uid, u32>,
    /// The HorizontalPodAutoscalers by the Deployments whose replicas they set; `None`: they were not read.
    pub(super) autoscalers: Option<BTreeMap<String, String>>,
}

/// An object that owns pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its UID.
    pub uid: Uid,
    /// Its kind, such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its own controller.
    pub parent: Option<Uid>,
    /// How many pods its owner wants, always as many; `None`: that varies, or its pods finish.
    pub replicas: Option<u32>,
    /// How many more it has because a drain has raised it. They are taken back.
    pub raised: u32,
    /// Its controller has carried out its specification: no rollout and no scaling is under way, but for a drain's raise.
    pub settled: bool,
    /// The labels of its pod template.
    pub labels: BTreeMap<String, String>,
    /// How it replaces its pods; `None`: it is not a Deployment.
    pub rollout: Option<Rollout>,
}

/// Who decides how many pods there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Top<'a> {
    /// Nobody: the pod has no controller.
    Bare,
    /// This one.
    Owner(&'a Owner),
    /// Something that was not read.
    Unknown,
}

impl NamespaceState {
    /// With all its pods, on whatever node, and all objects in it that own pods, directly or through others.
    /// `terminating`: it is being deleted.
    pub fn new(terminating: bool, pods: Vec<Pod>, owners: Vec<Owner>) -> Self {
        let owners = owners.into_iter().map(|owner| (owner.uid.clone(), owner));
        let mut state = Self {
            terminating,
            pods,
            owners: owners.collect(),
            alive: BTreeMap::new(),
            autoscalers: None,
        };
        let mut alive = BTreeMap::new();
        for pod in state.pods.iter().filter(|pod| is_alive(pod)) {
            if let Top::Owner(owner) = state.top(pod) {
                *alive.entry(owner.uid.clone()).or_insert(0) += 1;
            }
        }
        state.alive = alive;
        state
    }

    /// With its HorizontalPodAutoscalers, by the names of the Deployments whose replicas they set.
    #[must_use]
    pub fn with_autoscalers(self, autoscalers: BTreeMap<String, String>) -> Self {
        Self {
            autoscalers: Some(autoscalers),
            ..self
        }
    }

    pub(super) fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.owners.values()
    }

    /// Who decides on the pods of this pod's controller.
    pub(super) fn top(&self, pod: &Pod) -> Top<'_> {
        let Some(controller) = &pod.controller else {
            return Top::Bare;
        };
        let owner = self.owners.get(&controller.uid);
        owner.map_or(Top::Unknown, |owner| self.top_of(owner))
    }

    /// A Deployment of a ReplicaSet, a CronJob of a Job, else itself.
    fn top_of<'a>(&'a self, owner: &'a Owner) -> Top<'a> {
        let Some(parent) = &owner.parent else {
            return Top::Owner(owner);
        };
        // There are no more than two levels.
        let parent = self.owners.get(parent).filter(|parent| parent.parent.is_none());
        parent.map_or(Top::Unknown, Top::Owner)
    }

    /// The pod belongs to a workload that keeps it: a settled one that has no pod too many.
    pub(super) fn keeps(&self, pod: &Pod) -> bool {
        match self.top(pod) {
            Top::Owner(owner) => self.steady(owner).is_some(),
            Top::Bare | Top::Unknown => false,
        }
    }

    /// How many pods this workload has at the most from now on; `None`: that is open.
    pub(super) fn steady(&self, owner: &Owner) -> Option<u32> {
        let replicas = owner.replicas.filter(|_| owner.settled)?;
        let there = self.alive.get(&owner.uid).copied().unwrap_or(0);
        (there <= replicas.saturating_add(owner.raised)).then_some(replicas)
    }

    /// How many pods of a budget are there only because drains have raised their Deployments.
    pub(super) fn raised(&self, budget: &Budget) -> i32 {
        let mut raised: BTreeMap<&Uid, u32> = BTreeMap::new();
        for pod in self.pods.iter().filter(|pod| budget.selects(pod)) {
            if let Top::Owner(owner) = self.top(pod) {
                raised.insert(&owner.uid, owner.raised);
            }
        }
        i32::try_from(raised.into_values().sum::<u32>()).unwrap_or(i32::MAX)
    }

    /// A workload that has no pods of this selector now may get some.
    pub(super) fn may_add(&self, selector: &Selector, owner: &Owner) -> bool {
        match self.top_of(owner) {
            // Its parent answers for it.
            Top::Owner(top) if top.uid != owner.uid => return false,
            Top::Owner(_) if owner.settled && owner.replicas == Some(0) => return false,
            _ => {}
        }
        let mut template = selector.clone();
        template.labels.retain(|key, _| !is_added(key));
        template.expressions.retain(|term| !is_added(&term.key));
        template.matches(&owner.labels)
    }
}

fn is_added(key: &str) -> bool {
    ADDED_LABELS.contains(&key)
}

/// It counts for its controller.
pub(super) fn is_alive(pod: &Pod) -> bool {
    pod.deletion.is_none() && !pod.is_finished()
}
