//! The true state: the node, its pods and budgets as the API server has them, and the actions of kubelets and
//! controllers.
//!
//! It must not know the engine's opinion of any of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{Checkpoint, Deletion, Node, Phase, Pod, PodPhase, Time, Uid};

use crate::budgets::BudgetTruth;
use crate::surge::Rollouts;
use crate::timers::Chore;
use crate::volumes::Volumes;

pub(crate) const NODE: &str = "node-1";

/// The owner of the cordon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Nobody,
    Ours,
    Others,
}

#[derive(Clone, Debug)]
pub(crate) struct NodeTruth {
    pub(crate) uid: Uid,
    pub(crate) version: u64,
    pub(crate) owner: Owner,
    /// The node once had a cordon of ours.
    pub(crate) ever_ours: bool,
    pub(crate) checkpoint: Option<Checkpoint>,
}

/// A pod and its fate.
#[derive(Clone, Debug)]
pub(crate) struct PodTruth {
    pub(crate) pod: Pod,
    pub(crate) script: Script,
    pub(crate) ended: bool,
}

/// A future pod.
#[derive(Clone, Debug)]
pub(crate) struct Newborn {
    pub(crate) pod: Pod,
    pub(crate) script: Script,
}

/// A pod's fate.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// The time from its deletion until its containers have ended; `None`: never.
    pub(crate) ends_after: Option<u64>,
    /// The time from then until its object is removed, finalizers included; `None`: never.
    pub(crate) goes_after: Option<u64>,
    /// The time from its creation until its containers end by themselves.
    pub(crate) finishes_after: Option<u64>,
    pub(crate) returns: Returns,
}

/// The reaction of its controller to its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    Never,
    /// Creates another pod on another node.
    Elsewhere {
        same_name: bool,
        after: u64,
    },
    /// Creates another pod on this node, this many times.
    Here {
        same_name: bool,
        after: u64,
        times: u32,
    },
}

/// A change that must reach the watches, or that happens later.
#[derive(Debug)]
pub(crate) enum Change {
    Node,
    Pod(Uid),
    PodGone(Uid),
    Budget(String),
    BudgetGone(String, String),
    Volumes,
    Later(u64, Chore),
}

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) node: Option<NodeTruth>,
    pub(crate) pods: BTreeMap<Uid, PodTruth>,
    /// Every pod that ever existed, in its last state, and when its object was removed.
    pub(crate) gone: BTreeMap<Uid, (Pod, u64)>,
    pub(crate) budgets: BTreeMap<String, BudgetTruth>,
    pub(crate) dying: BTreeSet<String>,
    /// Only in worlds whose drains wait for volumes.
    pub(crate) volumes: Option<Volumes>,
    /// Only in worlds whose drains surge Deployments.
    pub(crate) rollouts: Option<Rollouts>,
    pub(crate) changes: Vec<Change>,
    version: u64,
    uids: u64,
}

/// What a command leaves on a node whose drain has not begun.
fn cordoned_ahead(node: Uid) -> Checkpoint {
    Checkpoint {
        id: String::from("command"),
        phase: Phase::Finished,
        own_cordon: true,
        ahead: true,
        ..Checkpoint::blank(node, Time::default())
    }
}

impl Cluster {
    /// A cordon of ours was made ahead of the drain.
    pub(crate) fn new(owner: Owner) -> Self {
        let uid = Uid::new("n1");
        let is_ours = owner == Owner::Ours;
        let node = NodeTruth {
            version: 1000,
            owner,
            ever_ours: is_ours,
            checkpoint: is_ours.then(|| cordoned_ahead(uid.clone())),
            uid,
        };
        Self {
            node: Some(node),
            pods: BTreeMap::new(),
            gone: BTreeMap::new(),
            budgets: BTreeMap::new(),
            dying: BTreeSet::new(),
            volumes: None,
            rollouts: None,
            changes: Vec::new(),
            version: 1000,
            uids: 0,
        }
    }

    /// The node as a watch shows it.
    pub(crate) fn node_event(&self) -> Option<Node> {
        self.node.as_ref().map(|node| Node {
            name: String::from(NODE),
            uid: node.uid.clone(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            unschedulable: node.owner != Owner::Nobody,
            conditions: Vec::new(),
            checkpoint: node.checkpoint.clone(),
            cancel: None,
            resource_version: node.version.to_string(),
        })
    }

    /// The pods of the node.
    pub(crate) fn on_node(&self) -> impl Iterator<Item = &PodTruth> {
        self.pods.values().filter(|truth| truth.pod.node == NODE)
    }

    pub(crate) fn list(&self) -> Vec<Pod> {
        self.on_node().map(|truth| truth.pod.clone()).collect()
    }

    /// Changes the node and increments its version.
    pub(crate) fn write_node(&mut self, edit: impl FnOnce(&mut NodeTruth)) -> Option<u64> {
        self.version += 1;
        let version = self.version;
        let node = self.node.as_mut()?;
        edit(node);
        node.version = version;
        self.changes.push(Change::Node);
        Some(version)
    }

    pub(crate) fn replace_node(&mut self, there: bool) {
        self.version += 1;
        let version = self.version;
        self.node = there.then(|| NodeTruth {
            uid: Uid::new(format!("n{version}")),
            version,
            owner: Owner::Nobody,
            ever_ours: false,
            checkpoint: None,
        });
        self.changes.push(Change::Node);
    }

    /// Creates a pod, unless one of its name exists. Assigns its UID.
    pub(crate) fn born(&mut self, now: u64, newborn: Newborn) -> Option<Uid> {
        let Newborn { mut pod, script } = newborn;
        let taken = self.named(&pod.id.namespace, &pod.id.name).is_some();
        if taken || self.dying.contains(&pod.id.namespace) || self.node.is_none() {
            return None;
        }
        self.uids += 1;
        let uid = Uid::new(format!("u{}", self.uids));
        pod.id.uid = uid.clone();
        pod.created = Time::from_millis(now);
        self.attach_volumes(now, &mut pod);
        if let Some(after) = script.finishes_after {
            self.changes
                .push(Change::Later(now + after, Chore::Finished(uid.clone())));
        }
        self.pods.insert(
            uid.clone(),
            PodTruth {
                pod,
                script,
                ended: false,
            },
        );
        self.changed(now, &uid);
        Some(uid)
    }

    pub(crate) fn named(&self, namespace: &str, name: &str) -> Option<&PodTruth> {
        self.pods
            .values()
            .find(|truth| truth.pod.id.namespace == namespace && truth.pod.id.name == name)
    }

    /// Reports a changed pod to its watchers and budgets.
    fn changed(&mut self, now: u64, uid: &Uid) {
        if let Some(truth) = self.pods.get(uid) {
            for (name, budget) in &self.budgets {
                if budget.budget.selects(&truth.pod) {
                    self.changes
                        .push(Change::Later(now + budget.lag, Chore::Sync(name.clone())));
                }
            }
            if truth.pod.node == NODE {
                self.changes.push(Change::Pod(uid.clone()));
            }
        }
    }

    /// Marks a pod for deletion. Returns whether that had an effect.
    pub(crate) fn delete(&mut self, now: u64, uid: &Uid, grace: Option<u64>) -> bool {
        let Some(truth) = self.pods.get_mut(uid) else {
            return false;
        };
        if truth.pod.deletion.is_some() {
            return false;
        }
        let grace = grace.unwrap_or(truth.pod.grace_seconds);
        let mirror = truth.pod.is_mirror();
        truth.pod.deletion = Some(Deletion {
            at: Time::from_millis(now + grace * 1000),
            grace_seconds: grace,
        });
        truth.pod.ready = truth.pod.ready && !truth.pod.is_finished();
        let at_once = (grace == 0 || truth.pod.is_finished()) && truth.pod.finalizers.is_empty();
        if truth.ended && !at_once {
            if let Some(after) = truth.script.goes_after {
                self.changes
                    .push(Change::Later(now + after, Chore::Gone(uid.clone())));
            }
            self.changed(now, uid);
            return true;
        }
        let ends = truth.script.ends_after.filter(|_| !mirror);
        let chore = if at_once {
            Chore::Gone(uid.clone())
        } else {
            Chore::Ended(uid.clone())
        };
        match (at_once, ends) {
            (true, _) => self.changes.push(Change::Later(now, chore)),
            (false, Some(after)) => self.changes.push(Change::Later(now + after, chore)),
            (false, None) => {}
        }
        self.changed(now, uid);
        true
    }

    /// A terminating pod is deleted again: its grace period may become shorter. The API server counts it from the first
    /// deletion; the kubelet begins it now.
    pub(crate) fn shorten(&mut self, now: u64, uid: &Uid, grace: Option<u64>) {
        let Some(truth) = self.pods.get_mut(uid) else {
            return;
        };
        let (Some(deletion), Some(grace)) = (&mut truth.pod.deletion, grace) else {
            return;
        };
        if grace >= deletion.grace_seconds {
            return;
        }
        let begun = deletion.at - Duration::from_secs(deletion.grace_seconds);
        *deletion = Deletion {
            at: begun + Duration::from_secs(grace),
            grace_seconds: grace,
        };
        if truth.script.ends_after.is_some() && !truth.pod.is_mirror() {
            let ends = Change::Later(now + grace * 1000, Chore::Ended(uid.clone()));
            self.changes.push(ends);
        }
        self.changed(now, uid);
    }

    pub(crate) fn chore(&mut self, now: u64, chore: Chore) {
        match chore {
            Chore::Ended(uid) => self.ended(now, &uid),
            Chore::Gone(uid) => self.remove(now, &uid),
            Chore::Finished(uid) => self.finished(now, &uid),
            Chore::Born(newborn) => {
                self.born(now, *newborn);
            }
            Chore::Sync(name) => self.sync(now, &name),
            Chore::Replaced(name) => {
                if let Some(budget) = self.budgets.get_mut(&name) {
                    budget.elsewhere += 1;
                    self.sync(now, &name);
                }
            }
            Chore::Sweep(namespace) => self.sweep(now, &namespace),
            Chore::RolledOut(deployment) => self.rolled_out(now, &deployment),
            Chore::RaiseReady(deployment) => self.raise_ready(now, &deployment),
            Chore::OtherDrain(lot) => self.other_drain(now, lot),
            Chore::OtherDrainEnds(deployment) => self.other_drain_ends(now, &deployment),
            Chore::Detach(attachment) => self.detach(&attachment),
        }
    }

    fn ended(&mut self, now: u64, uid: &Uid) {
        let Some(truth) = self.pods.get_mut(uid) else {
            return;
        };
        if truth.ended {
            return;
        }
        truth.ended = true;
        truth.pod.ready = false;
        if let Some(after) = truth.script.goes_after {
            self.changes
                .push(Change::Later(now + after, Chore::Gone(uid.clone())));
        }
        if truth.script.goes_after != Some(0) {
            truth.pod.phase = PodPhase::Failed;
            self.changed(now, uid);
        }
    }

    fn finished(&mut self, now: u64, uid: &Uid) {
        let Some(truth) = self.pods.get_mut(uid) else {
            return;
        };
        if truth.ended {
            return;
        }
        truth.pod.ready = false;
        truth.pod.phase = PodPhase::Succeeded;
        truth.ended = true;
        if truth.pod.deletion.is_some()
            && let Some(after) = truth.script.goes_after
        {
            self.changes
                .push(Change::Later(now + after, Chore::Gone(uid.clone())));
        }
        self.changed(now, uid);
    }

    /// Removes a pod's object, and lets its controller create a new one.
    pub(crate) fn remove(&mut self, now: u64, uid: &Uid) {
        self.changed(now, uid);
        let Some(truth) = self.pods.remove(uid) else {
            return;
        };
        self.changes
            .retain(|change| !matches!(change, Change::Pod(changed) if changed == uid));
        for (name, budget) in &self.budgets {
            if let Some(after) = budget.recovers.filter(|_| budget.budget.selects(&truth.pod)) {
                self.changes
                    .push(Change::Later(now + after, Chore::Replaced(name.clone())));
            }
        }
        if truth.pod.node == NODE {
            self.changes.push(Change::PodGone(uid.clone()));
        }
        self.release_volumes(now, &truth.pod);
        if let Some((after, newborn)) = successor(&truth) {
            self.changes
                .push(Change::Later(now + after, Chore::Born(Box::new(newborn))));
        }
        self.gone.insert(uid.clone(), (truth.pod, now));
    }

    fn sweep(&mut self, now: u64, namespace: &str) {
        let pods: Vec<Uid> = self
            .pods
            .values()
            .filter(|truth| truth.pod.id.namespace == namespace)
            .map(|truth| truth.pod.id.uid.clone())
            .collect();
        for uid in pods {
            self.delete(now, &uid, None);
        }
    }
}

/// The pod that a controller creates in place of a removed one.
fn successor(truth: &PodTruth) -> Option<(u64, Newborn)> {
    let mut newborn = Newborn {
        pod: truth.pod.clone(),
        script: truth.script.clone(),
    };
    let pod = &mut newborn.pod;
    pod.deletion = None;
    pod.phase = PodPhase::Running;
    pod.ready = true;
    newborn.script.finishes_after = None;
    let (after, same_name) = match truth.script.returns {
        Returns::Never => return None,
        Returns::Elsewhere { same_name, after } => {
            pod.node = String::from("node-2");
            newborn.script.returns = Returns::Never;
            (after, same_name)
        }
        Returns::Here { times: 0, .. } => return None,
        Returns::Here {
            same_name,
            after,
            times,
        } => {
            newborn.script.returns = Returns::Here {
                same_name,
                after,
                times: times - 1,
            };
            (after, same_name)
        }
    };
    if !same_name {
        pod.id.name.push('x');
    }
    Some((after, newborn))
}
