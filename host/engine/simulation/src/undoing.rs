//! What policies have changed outside of the cluster, and what the node's Lease says of it.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{
    Drain, HookPhase, HookStep, Intent, Notice, Outcome, PolicyInfo, Request, StepOutcome, Task, ToUndo,
};

use crate::violation::{Checked, broken};
use crate::world::World;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// The requests for which a policy has changed something that it has not undone.
    changed: BTreeMap<String, BTreeSet<String>>,
    /// The hooks of an uncordon that have finished, by request and policy.
    undone: BTreeSet<(String, String, HookPhase)>,
    /// The last cancel hook was called to keep its changes.
    keeps: bool,
    /// The process has written the node.
    has_written: bool,
    lease: Lease,
}

/// What is written of a drain into the node's Lease, when it is taken and when it is released.
#[derive(Clone, Debug, Default)]
struct Lease {
    request: String,
    /// What earlier drains have left.
    to_undo: ToUndo,
    /// The policies that the drain may call.
    policies: BTreeSet<String>,
}

impl Outside {
    /// A process takes the Lease. Returns what earlier drains have left, and the policies that a process of the same drain may
    /// have called.
    pub(crate) fn take_lease(&mut self, request: &Request) -> (ToUndo, BTreeSet<String>) {
        self.has_written = false;
        let found = std::mem::take(&mut self.lease);
        let (mut to_undo, mut own) = (found.to_undo, found.policies);
        if found.request != request.id {
            let earlier = std::mem::take(&mut own).into_iter();
            to_undo.extend(earlier.map(|policy| (policy, String::new())));
        }
        let drains = request.intent == Intent::Drain;
        let undoing = request
            .policies
            .iter()
            .filter(|policy| drains && policy.undoes_later());
        self.lease = Lease {
            request: request.id.clone(),
            to_undo: to_undo.clone(),
            policies: undoing.map(|policy| policy.name.clone()).collect(),
        };
        (to_undo, own)
    }

    /// A drain has ended, and its process releases the Lease.
    fn release_lease(&mut self, request: &Request, to_undo: ToUndo) {
        self.lease = Lease {
            request: request.id.clone(),
            to_undo,
            policies: BTreeSet::new(),
        };
    }

    /// The engine gives a command.
    pub(crate) fn asked(&mut self, task: &Task, drain: &Drain) {
        self.has_written |= task.written_node().is_some();
        if matches!(task, Task::Step { step, .. } if step.phase == HookPhase::OnCancel) {
            self.keeps = drain.held() || drain.found_drained();
        }
    }

    /// A policy has taken a step for this request.
    pub(crate) fn stepped(&mut self, step: &HookStep, outcome: &StepOutcome, request: &Request) {
        let HookStep { policy, phase, .. } = step;
        let is_done = *outcome == StepOutcome::Done;
        let refuses = matches!(outcome, StepOutcome::Failed { retry_after, .. } if retry_after.is_none());
        if !phase.undoes() {
            if !refuses {
                let changed = self.changed.entry(policy.clone()).or_default();
                changed.insert(request.id.clone());
            }
        } else if *phase == HookPhase::OnCancel {
            if is_done && !self.keeps {
                let changed = self.changed.entry(policy.clone()).or_default();
                changed.remove(&request.id);
            }
        } else if is_done {
            self.undone.insert((request.id.clone(), policy.clone(), *phase));
            let mut policies = request.policies.iter();
            let of_policy = policies.find(|info| info.name == *policy);
            if of_policy.is_some_and(|info| self.has_undone(request, info)) {
                self.changed.remove(policy);
            }
        }
    }

    fn has_undone(&self, request: &Request, policy: &PolicyInfo) -> bool {
        let mut phases = HookPhase::UNCORDON
            .iter()
            .filter(|phase| policy.phases.contains(phase));
        phases.all(|phase| {
            let hook = (request.id.clone(), policy.name.clone(), *phase);
            self.undone.contains(&hook)
        })
    }

    /// Invariant 9: the end of a drain names each policy whose part is left, either as one that keeps the node out of service, or
    /// with why it has not undone that.
    pub(crate) fn is_named_at_the_end(notice: &Notice, drain: &Drain) -> Checked {
        let Notice::Finished { summary, .. } = notice else {
            return Ok(());
        };
        let named: Vec<_> = summary.kept_by.iter().chain(summary.to_undo.keys()).collect();
        let left = drain.to_undo();
        if named.len() == left.len() && named.iter().all(|policy| left.contains_key(*policy)) {
            return Ok(());
        }
        broken(9, format!("the end names {named:?}, and the record is {left:?}"))
    }

    /// The Lease says that something is left.
    pub(crate) fn is_left(&self) -> bool {
        !self.lease.to_undo.is_empty()
    }

    fn has_changed(&self, policy: &str) -> bool {
        self.changed
            .get(policy)
            .is_some_and(|requests| !requests.is_empty())
    }
}

impl World {
    /// Invariant 9, at the end of a drain or an uncordon. `writes_work`: writes of the node work in time.
    pub(crate) fn records_what_is_left(&mut self, writes_work: bool) -> Checked {
        let Some(drain) = &self.drain else {
            return Ok(());
        };
        let record = drain.to_undo();
        let undoing = self
            .request
            .policies
            .iter()
            .filter(|policy| policy.undoes_later());
        let mut left = undoing.filter(|policy| self.outside.has_changed(&policy.name));
        if let Some(policy) = left.find(|policy| !record.contains_key(&policy.name)) {
            let name = &policy.name;
            let outcome = drain.outcome();
            return broken(
                9,
                format!("{name} has not undone its part, and the record of {outcome:?} has only {record:?}"),
            );
        }
        if matches!(drain.outcome(), Some(Outcome::Uncordoned { .. })) && !record.is_empty() {
            return broken(9, format!("an uncordon that succeeded leaves {record:?}"));
        }
        let known = drain.node().map(|node| &node.uid);
        let node = self.cluster.node.as_ref();
        let node = node.filter(|node| Some(&node.uid) == known);
        let marked = node.filter(|_| writes_work && !self.wiped);
        let marked = marked.map(|node| node.checkpoint.as_ref().map(|mark| mark.left_to_undo()));
        // A drain that changes nothing leaves the record where it was.
        if let Some(marked) = marked
            && self.outside.has_written
            && !record.is_empty()
            && marked.as_ref() != Some(&record)
        {
            return broken(
                9,
                format!("the record is {record:?}, and the node has {marked:?}"),
            );
        }
        let name = match (drain.outcome(), self.request.intent) {
            _ if record.is_empty() => "nothing",
            (Some(Outcome::Drained), _) => "of a drained node",
            (_, Intent::Uncordon) => "after an uncordon",
            (Some(Outcome::Cancelled { .. }), _) => "after a cancel",
            _ if known.is_none() || node.is_none() => "of a node that is gone",
            _ => "after a failure",
        };
        self.coverage.count("to undo", name);
        self.outside.release_lease(&self.request, record);
        Ok(())
    }
}
