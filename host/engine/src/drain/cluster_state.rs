//! The node, its pods and their budgets as last seen, from events that may be late, doubled or reordered.
//!
//! Two facts make that safe. A UID is never used twice, so a pod that was seen deleted stays deleted. And a pod never
//! stops being deleted or finished, so news that says so is old. It must not know what a drain is.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::budget_tracker::BudgetKey;
use super::node_state::{NodeNews, NodeState};
use crate::uid_map::UidMap;
use crate::{Budget, Checkpoint, Node, Pod, SelectorIndex, Uid};

/// How many deleted UIDs are remembered.
const REMEMBERED: usize = 4096;

/// The last known state.
#[derive(Debug)]
pub(super) struct ClusterState {
    node_name: String,
    node_state: NodeState,
    /// Shared, because many are looked at while the drain changes.
    pods: UidMap<Arc<Pod>>,
    pods_seen: bool,
    budgets: BTreeMap<BudgetKey, Budget>,
    budgets_seen: bool,
    /// The budgets that select each pod, of more than two the first two: that seldom changes, and each event asks.
    selecting: UidMap<Vec<BudgetKey>>,
    /// Counts events about pods, to order them against lists.
    events: u64,
    applied: BTreeMap<Uid, u64>,
    tombstones: BTreeMap<Uid, u64>,
    /// Pods that have gone and were not asked for since.
    gone: BTreeSet<Uid>,
}

impl ClusterState {
    pub(super) fn new(node_name: String) -> Self {
        Self {
            node_name,
            node_state: NodeState::default(),
            pods: UidMap::new(),
            pods_seen: false,
            budgets: BTreeMap::new(),
            budgets_seen: false,
            selecting: UidMap::new(),
            events: 0,
            applied: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            gone: BTreeSet::new(),
        }
    }

    /// The pods have been seen, and none of these is there.
    pub(super) fn are_gone(&self, pods: &BTreeSet<Uid>) -> bool {
        self.pods_seen && pods.iter().all(|uid| !self.pods.contains_key(uid))
    }

    /// The node, the pods and the budgets have all been seen.
    pub(super) fn is_complete(&self) -> bool {
        self.node_state.node().is_some() && self.pods_seen && self.budgets_seen
    }

    pub(super) fn node(&self) -> Option<&Node> {
        self.node_state.node()
    }

    /// Which node it is; known before it was seen when an earlier process has said so.
    pub(super) const fn node_uid(&self) -> Option<&Uid> {
        self.node_state.uid()
    }

    /// See [`NodeState::version`].
    pub(super) fn node_version(&self) -> Option<&String> {
        self.node_state.version()
    }

    /// An earlier process has worked on this node.
    pub(super) fn expect_node(&mut self, uid: Uid) {
        self.node_state.expect(uid);
    }

    pub(super) fn apply_node(&mut self, node: Option<Node>) -> NodeNews {
        self.node_state.apply(node)
    }

    /// See [`NodeState::apply_write`].
    pub(super) fn node_written(
        &mut self,
        version: String,
        unschedulable: bool,
        mark: Option<Checkpoint>,
    ) -> bool {
        self.node_state.apply_write(version, unschedulable, mark)
    }

    /// See [`NodeState::apply_save`].
    pub(super) fn node_saved(&mut self, version: String, mark: Option<Checkpoint>) {
        self.node_state.apply_save(version, mark);
    }

    pub(super) fn is_cordoned(&self) -> bool {
        self.node_state.is_cordoned()
    }

    pub(super) fn pods(&self) -> &UidMap<Arc<Pod>> {
        &self.pods
    }

    pub(super) fn pod(&self, uid: &Uid) -> Option<&Pod> {
        self.shared_pod(uid).map(Arc::as_ref)
    }

    pub(super) fn shared_pod(&self, uid: &Uid) -> Option<&Arc<Pod>> {
        self.pods.get(uid)
    }

    /// The pods that have gone since it was asked last.
    pub(super) fn take_gone(&mut self) -> BTreeSet<Uid> {
        core::mem::take(&mut self.gone)
    }

    pub(super) fn budget(&self, key: &BudgetKey) -> Option<&Budget> {
        self.budgets.get(key)
    }

    /// The budget that governs the pod's eviction, if one does.
    pub(super) fn governing_budget(&self, pod: &Pod) -> Option<&BudgetKey> {
        let key = self.selecting_budget(pod)?;
        self.budgets.get(key)?.governs(pod).then_some(key)
    }

    /// The only budget that selects the pod. Several are the API server's business.
    pub(super) fn selecting_budget(&self, pod: &Pod) -> Option<&BudgetKey> {
        match self.selecting.get(&pod.id.uid)?.as_slice() {
            [key] => Some(key),
            _ => None,
        }
    }

    /// It selects a pod of this node, or has done so.
    pub(super) fn is_budget_of_pods(&self, budget: &Budget) -> bool {
        let selects_any = || self.pods.values().any(|pod| budget.selects(pod));
        match self.budgets.get_key_value(&BudgetKey::of(budget)) {
            Some((key, known)) => {
                let mut selecting = self.selecting.values().flatten();
                selecting.any(|selecting| selecting.is(key))
                    || (known.selector != budget.selector && selects_any())
            }
            None => selects_any(),
        }
    }

    /// The count of events up to now, for [`apply_list`](Self::apply_list).
    pub(super) fn mark(&self) -> u64 {
        self.events
    }

    /// A list from the watch: no earlier event counts against it.
    pub(super) fn apply_pods(&mut self, pods: Vec<Pod>) {
        self.pods_seen = true;
        let listed: Vec<Uid> = pods.iter().map(|pod| pod.id.uid.clone()).collect();
        self.apply_list(pods, u64::MAX);
        // A list that was asked for before says nothing about these.
        self.applied
            .extend(listed.into_iter().map(|uid| (uid, self.events)));
        self.applied.retain(|uid, _| self.pods.contains_key(uid));
    }

    /// A fresh list, asked for at `mark`: events since then may be newer than the list.
    pub(super) fn apply_list(&mut self, pods: Vec<Pod>, mark: u64) {
        self.events += 1;
        let listed: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.id.uid).collect();
        let missing: Vec<Uid> = self
            .pods
            .keys()
            .filter(|uid| !listed.contains(uid) && self.applied.get(uid).is_none_or(|when| *when <= mark))
            .cloned()
            .collect();
        for uid in missing {
            self.forget_pod(uid);
        }
        let mut has_new_labels = false;
        for pod in pods {
            if self.tombstones.get(&pod.id.uid).is_none_or(|when| *when <= mark) {
                self.tombstones.remove(&pod.id.uid);
                has_new_labels |= self.put(pod).is_some();
            }
        }
        if has_new_labels {
            self.select_all();
        }
    }

    pub(super) fn apply_pod(&mut self, pod: Pod) {
        self.events += 1;
        if !self.tombstones.contains_key(&pod.id.uid) {
            self.applied.insert(pod.id.uid.clone(), self.events);
            if let Some(pod) = self.put(pod) {
                let keys = selecting(self.budgets_beside(&pod), &pod);
                self.selecting.insert(pod.id.uid.clone(), keys);
            }
        }
    }

    pub(super) fn delete_pod(&mut self, uid: Uid) {
        self.events += 1;
        self.forget_pod(uid);
    }

    /// Replaces all budgets and says what the old ones were.
    pub(super) fn apply_budgets(&mut self, budgets: Vec<Budget>) -> BTreeMap<BudgetKey, Budget> {
        let new = budgets
            .into_iter()
            .map(|budget| (BudgetKey::of(&budget), budget))
            .collect();
        self.budgets_seen = true;
        let old = core::mem::replace(&mut self.budgets, new);
        self.select_all();
        old
    }

    /// Takes a budget and says what it was before.
    pub(super) fn apply_budget(&mut self, budget: Budget) -> Option<Budget> {
        let (key, selector) = (BudgetKey::of(&budget), budget.selector.clone());
        let old = self.budgets.insert(key, budget);
        if old.as_ref().is_none_or(|old| old.selector != selector) {
            self.select_all();
        }
        old
    }

    /// Forgets a budget and says what it was.
    pub(super) fn delete_budget(&mut self, key: &BudgetKey) -> Option<Budget> {
        let old = self.budgets.remove(key);
        self.select_all();
        old
    }

    fn select_all(&mut self) {
        let mut index = SelectorIndex::default();
        for (key, budget) in &self.budgets {
            index.insert(&budget.namespace, &budget.selector.labels, (key, budget));
        }
        let keys = |pod: &Pod| selecting(index.candidates(&pod.id.namespace, &pod.labels).copied(), pod);
        let pods = self.pods.values();
        self.selecting = pods.map(|pod| (pod.id.uid.clone(), keys(pod))).collect();
    }

    /// Those of the pod's namespace.
    fn budgets_beside(&self, pod: &Pod) -> impl Iterator<Item = (&BudgetKey, &Budget)> {
        let namespace = &pod.id.namespace;
        let from = self.budgets.range(BudgetKey::new(namespace, "")..);
        from.take_while(move |(_, budget)| budget.namespace == *namespace)
    }

    pub(super) fn all_budgets(&self) -> impl Iterator<Item = (&BudgetKey, &Budget)> {
        self.budgets.iter()
    }

    /// Returns the pod if it has other labels than before, so that other budgets may select it.
    fn put(&mut self, mut pod: Pod) -> Option<Arc<Pod>> {
        if pod.node != self.node_name {
            self.forget_pod(pod.id.uid);
            return None;
        }
        if let Some(known) = self.pods.get(&pod.id.uid) {
            if known.is_finished() && !pod.is_finished() {
                return None;
            }
            if pod.deletion.is_none() {
                pod.deletion = known.deletion;
            }
        } else if let Some(namesake) = self.namesake(&pod) {
            // Two pods cannot have one name at once: the older one is gone, whatever order the news came in.
            if namesake.created > pod.created {
                self.forget_pod(pod.id.uid);
                return None;
            }
            let uid = namesake.id.uid.clone();
            self.forget_pod(uid);
        }
        self.gone.remove(&pod.id.uid);
        let pod = Arc::new(pod);
        let before = self.pods.insert(pod.id.uid.clone(), Arc::clone(&pod));
        before
            .is_none_or(|before| before.labels != pod.labels)
            .then_some(pod)
    }

    fn namesake(&self, pod: &Pod) -> Option<&Pod> {
        self.pods.values().map(Arc::as_ref).find(|other| {
            other.id.name == pod.id.name
                && other.id.namespace == pod.id.namespace
                && other.id.uid != pod.id.uid
        })
    }

    fn forget_pod(&mut self, uid: Uid) {
        if self.pods.remove(&uid).is_some() {
            self.gone.insert(uid.clone());
        }
        self.selecting.remove(&uid);
        self.applied.remove(&uid);
        self.tombstones.insert(uid, self.events);
        if self.tombstones.len() > REMEMBERED {
            let oldest = self
                .tombstones
                .iter()
                .min_by_key(|(_, when)| **when)
                .map(|(uid, _)| uid.clone());
            if let Some(oldest) = oldest {
                self.tombstones.remove(&oldest);
            }
        }
    }
}

/// The keys of the budgets that select the pod, the first two of them at most: several are as good as two.
fn selecting<'a>(among: impl Iterator<Item = (&'a BudgetKey, &'a Budget)>, pod: &Pod) -> Vec<BudgetKey> {
    let selecting = among.filter(|(_, budget)| budget.selects(pod));
    let mut keys: Vec<_> = selecting.map(|(key, _)| key.clone()).collect();
    keys.sort_unstable();
    keys.truncate(2);
    keys
}
