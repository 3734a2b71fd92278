//! What we believe about the node, its pods and their budgets, from events that may be late, doubled or reordered.
//!
//! Three facts make that safe. A UID is never used twice, so a pod that was seen deleted stays deleted. A pod never
//! stops being deleted or finished, so news that says so is old. And the node's resource versions tell which of two
//! states is the later one. It must not know what a drain is.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::allowance::BudgetKey;
use crate::{Budget, Node, Pod, Uid};

/// How many deleted UIDs are remembered.
const REMEMBERED: usize = 4096;

/// The last known state.
#[derive(Debug)]
pub(super) struct World {
    node_name: String,
    node: Option<Node>,
    /// The version of our last write, while no event has shown it and versions cannot be compared.
    unseen_write: Option<(String, bool)>,
    pods: BTreeMap<Uid, Pod>,
    heard_pods: bool,
    budgets: BTreeMap<BudgetKey, Budget>,
    heard_budgets: bool,
    /// Counts what was heard of pods, to order it against lists.
    heard: u64,
    applied: BTreeMap<Uid, u64>,
    buried: BTreeMap<Uid, u64>,
}

/// What an event about the node means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeNews {
    /// Older than what we know.
    Old,
    /// Nothing that matters, or the first news.
    Fresh,
    /// It was cordoned and is not any more.
    Uncordoned,
    /// It is not there, or another node has its name.
    Gone,
}

impl World {
    pub(super) fn new(node_name: String) -> Self {
        Self {
            node_name,
            node: None,
            unseen_write: None,
            pods: BTreeMap::new(),
            heard_pods: false,
            budgets: BTreeMap::new(),
            heard_budgets: false,
            heard: 0,
            applied: BTreeMap::new(),
            buried: BTreeMap::new(),
        }
    }

    /// The node, the pods and the budgets have all been heard of.
    pub(super) fn is_complete(&self) -> bool {
        self.node.is_some() && self.heard_pods && self.heard_budgets
    }

    pub(super) fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    pub(super) fn is_cordoned(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.unschedulable)
    }

    pub(super) fn pods(&self) -> &BTreeMap<Uid, Pod> {
        &self.pods
    }

    pub(super) fn pod(&self, uid: &Uid) -> Option<&Pod> {
        self.pods.get(uid)
    }

    pub(super) fn budget(&self, key: &BudgetKey) -> Option<&Budget> {
        self.budgets.get(key)
    }

    pub(super) fn budgets_of(&self, pod: &Pod) -> impl Iterator<Item = &Budget> {
        let first = BudgetKey::new(&pod.id.namespace, "");
        let of_namespace = self.budgets.range(first..).map(|(_, budget)| budget);
        of_namespace
            .take_while(|budget| budget.namespace == pod.id.namespace)
            .filter(|budget| budget.selects(pod))
    }

    /// What has been heard up to now, to be handed to [`apply_list`](Self::apply_list).
    pub(super) fn mark(&self) -> u64 {
        self.heard
    }

    pub(super) fn apply_node(&mut self, node: Option<Node>) -> NodeNews {
        let Some(node) = node else {
            return NodeNews::Gone;
        };
        if let Some(known) = &self.node {
            if known.uid != node.uid {
                return NodeNews::Gone;
            }
            if self.is_old(&node) {
                return NodeNews::Old;
            }
        }
        self.unseen_write = None;
        let lifted = self.is_cordoned() && !node.unschedulable;
        self.node = Some(node);
        if lifted {
            NodeNews::Uncordoned
        } else {
            NodeNews::Fresh
        }
    }

    /// The watch shows states older than our own write for a while, and they look as if somebody had undone it.
    /// Versions that are numbers are compared. Those that are not tell nothing, so everything is taken for old
    /// until the version of our write appears, or a state that cannot be from before it.
    fn is_old(&self, node: &Node) -> bool {
        let known = self
            .node
            .as_ref()
            .map_or("", |known| known.resource_version.as_str());
        match (number(&node.resource_version), number(known)) {
            (Some(new), Some(known)) => new < known,
            _ => self
                .unseen_write
                .as_ref()
                .is_some_and(|(version, unschedulable)| {
                    *version != node.resource_version && *unschedulable != node.unschedulable
                }),
        }
    }

    /// Our own write succeeded with this version: the node is what we made of it, unless the watch has shown a later
    /// state already.
    pub(super) fn apply_write(&mut self, version: String, edit: impl FnOnce(&mut Node)) {
        let Some(node) = &mut self.node else {
            return;
        };
        match (number(&version), number(&node.resource_version)) {
            (Some(written), Some(known)) if written < known => return,
            (Some(_), Some(_)) => {}
            _ if version == node.resource_version => {}
            _ => self.unseen_write = Some((version.clone(), node.unschedulable)),
        }
        edit(node);
        node.resource_version = version;
        if let Some((_, unschedulable)) = &mut self.unseen_write {
            *unschedulable = node.unschedulable;
        }
    }

    /// A list from the watch: nothing heard before counts against it.
    pub(super) fn apply_pods(&mut self, pods: Vec<Pod>) {
        self.heard_pods = true;
        self.apply_list(pods, u64::MAX);
    }

    /// A fresh list, asked for when `mark` was heard: what was heard since then may be newer than the list.
    pub(super) fn apply_list(&mut self, pods: Vec<Pod>, mark: u64) {
        self.heard += 1;
        let listed: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.id.uid).collect();
        let missing: Vec<Uid> = self
            .pods
            .keys()
            .filter(|uid| !listed.contains(uid) && self.applied.get(uid).is_none_or(|when| *when <= mark))
            .cloned()
            .collect();
        for uid in missing {
            self.bury(uid);
        }
        for pod in pods {
            if self.buried.get(&pod.id.uid).is_none_or(|when| *when <= mark) {
                self.buried.remove(&pod.id.uid);
                self.put(pod);
            }
        }
    }

    pub(super) fn apply_pod(&mut self, pod: Pod) {
        self.heard += 1;
        if !self.buried.contains_key(&pod.id.uid) {
            self.applied.insert(pod.id.uid.clone(), self.heard);
            self.put(pod);
        }
    }

    pub(super) fn delete_pod(&mut self, uid: Uid) {
        self.heard += 1;
        self.bury(uid);
    }

    /// Replaces all budgets and says what the old ones were.
    pub(super) fn apply_budgets(&mut self, budgets: Vec<Budget>) -> BTreeMap<BudgetKey, Budget> {
        let new = budgets
            .into_iter()
            .map(|budget| (BudgetKey::of(&budget), budget))
            .collect();
        self.heard_budgets = true;
        core::mem::replace(&mut self.budgets, new)
    }

    /// Takes a budget and says what it was before.
    pub(super) fn apply_budget(&mut self, budget: Budget) -> Option<Budget> {
        self.budgets.insert(BudgetKey::of(&budget), budget)
    }

    pub(super) fn delete_budget(&mut self, key: &BudgetKey) {
        self.budgets.remove(key);
    }

    pub(super) fn all_budgets(&self) -> impl Iterator<Item = (&BudgetKey, &Budget)> {
        self.budgets.iter()
    }

    fn put(&mut self, mut pod: Pod) {
        if pod.node != self.node_name {
            self.bury(pod.id.uid);
            return;
        }
        if let Some(known) = self.pods.get(&pod.id.uid) {
            if known.is_finished() && !pod.is_finished() {
                return;
            }
            if pod.deletion.is_none() {
                pod.deletion = known.deletion;
            }
        } else if let Some(namesake) = self.namesake(&pod) {
            // Two pods cannot have one name at once: the older one is gone, whatever order the news came in.
            if namesake.created > pod.created {
                self.bury(pod.id.uid);
                return;
            }
            let uid = namesake.id.uid.clone();
            self.bury(uid);
        }
        self.pods.insert(pod.id.uid.clone(), pod);
    }

    fn namesake(&self, pod: &Pod) -> Option<&Pod> {
        self.pods.values().find(|other| {
            other.id.name == pod.id.name
                && other.id.namespace == pod.id.namespace
                && other.id.uid != pod.id.uid
        })
    }

    fn bury(&mut self, uid: Uid) {
        self.pods.remove(&uid);
        self.applied.remove(&uid);
        self.buried.insert(uid, self.heard);
        if self.buried.len() > REMEMBERED {
            let oldest = self
                .buried
                .iter()
                .min_by_key(|(_, when)| **when)
                .map(|(uid, _)| uid.clone());
            if let Some(oldest) = oldest {
                self.buried.remove(&oldest);
            }
        }
    }
}

fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}
