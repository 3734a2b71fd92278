//! The progress of one node during an operation, whichever process runs it: from the engine's notices, or from the API
//! server's state if another process drains.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_api::{ClaimStatus, LifecycleEvent};
use scupper_engine::{Budget, Drain, Notice, Phase, PodRef, Reason, Time, Uid};
use scupper_pre_flight::what_opens;

use crate::drain_status::{
    Estimate, HookStatus, StatusBuilder, VolumesStatus, WaveStatus, open_hooks, subject_text,
};
use crate::status::{NodeStatus, phase_words};

/// Interval between two queries to the engine for the reasons of all pods.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The state of a node at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeSnapshot {
    pub(super) node: String,
    /// The phase, as text.
    pub(super) phase_text: String,
    pub(super) began: Time,
    pub(super) deadline: Option<Time>,
    /// When it will probably end, if that is known.
    pub(super) estimate: Option<Estimate>,
    /// Number of pods that are gone, and the number to be evicted in all. `None`: not known yet.
    pub(super) pods: Option<(usize, usize)>,
    pub(super) wave: Option<WaveStatus>,
    pub(super) waits_for: Vec<WaitsFor>,
    /// The budgets that waiting cannot open, by namespace and name, each with the change that opens it.
    pub(super) closed: BTreeMap<(String, String), String>,
}

/// A blocker of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// A hook, and the text of its subject.
    Hook(HookStatus, String),
    /// Volumes that are still attached.
    Volumes(VolumesStatus),
    /// A pod.
    Pod(PodRef, Reason),
}

/// The progress of one node so far.
#[derive(Debug)]
pub(super) struct NodeProgress {
    node: String,
    began: Time,
    status_builder: StatusBuilder,
    planned: bool,
    /// Pods to be evicted, including those that are gone.
    leaving: BTreeSet<Uid>,
    /// Number of pods that were gone before the first observation.
    unseen: usize,
    /// Number of further pods to be evicted, for which the published status has no room.
    without_room: usize,
    facts: Source,
}

#[derive(Debug)]
enum Source {
    /// A text only.
    Text(String),
    /// The state from the engine, and when it was read.
    Engine(Time, NodeSnapshot),
    /// The state from the API server, for this LifecycleEvent.
    ApiServer(String, Uid, Box<NodeStatus>),
}

impl NodeProgress {
    pub(super) fn begin(node: &str, began: Time, words: String) -> Self {
        Self {
            node: node.to_owned(),
            began,
            status_builder: StatusBuilder::default(),
            planned: false,
            leaving: BTreeSet::new(),
            unseen: 0,
            without_room: 0,
            facts: Source::Text(words),
        }
    }

    /// Records a notice of the engine.
    pub(super) fn notice(&mut self, now: Time, notice: &Notice) {
        self.status_builder.notice(now, notice);
        self.planned |= matches!(notice, Notice::Planned(_));
    }

    /// Records that the engine's loop has run.
    pub(super) fn turned(&mut self, now: Time, drain: &Drain, estimate: impl FnOnce() -> Option<Estimate>) {
        if let Source::Engine(looked, _) = &self.facts
            && now.since(*looked) < LOOK_EVERY
        {
            return;
        }
        let waiting = drain.waiting();
        let is_leaving = |(pod, reason): &(PodRef, Reason)| (pod.uid.clone(), Some(!reason.stays()));
        let pods = self.count(waiting.iter().map(is_leaving).collect(), 0, None);
        let view = self.status_builder.build(now, "", Vec::new(), None);
        let name = |uid: &Uid| {
            let pod = waiting.iter().find(|(pod, _)| pod.uid == *uid);
            pod.map(|(pod, _)| pod.to_string())
        };
        let hooks = view.hooks.into_iter().map(|hook| {
            let of = subject_text(&hook.subject, name);
            WaitsFor::Hook(hook, of)
        });
        let mut waits_for: Vec<_> = hooks.collect();
        let words = phase_words(drain.phase(), !waits_for.is_empty());
        waits_for.extend(view.volumes.map(WaitsFor::Volumes));
        let held = waiting.into_iter().filter(|(_, reason)| *reason != Reason::Kept);
        waits_for.extend(held.map(|(pod, reason)| WaitsFor::Pod(pod, reason)));
        let snapshot = NodeSnapshot {
            node: self.node.clone(),
            phase_text: words.to_owned(),
            began: self.began,
            deadline: drain.request().deadline,
            estimate: estimate(),
            pods,
            wave: view.wave.filter(|_| drain.phase() == Phase::Evicting),
            waits_for,
            closed: closed(drain.budgets()),
        };
        self.facts = Source::Engine(now, snapshot);
    }

    /// Records new state from the API server.
    pub(super) fn observe(&mut self, event: &str, uid: &Uid, status: NodeStatus) {
        self.facts = Source::ApiServer(event.to_owned(), uid.clone(), Box::new(status));
    }

    /// The current state.
    pub(super) fn snapshot(&mut self, now: Time) -> NodeSnapshot {
        let facts = std::mem::replace(&mut self.facts, Source::Text(String::new()));
        let snapshot = match &facts {
            Source::Text(words) => self.without_facts(words.clone()),
            Source::Engine(_, snapshot) => snapshot.clone(),
            Source::ApiServer(event, uid, status) => self.of_status(now, event, uid, status),
        };
        self.facts = facts;
        snapshot
    }

    fn without_facts(&self, phase_text: String) -> NodeSnapshot {
        NodeSnapshot {
            node: self.node.clone(),
            phase_text,
            began: self.began,
            deadline: None,
            estimate: None,
            pods: None,
            wave: None,
            waits_for: Vec::new(),
            closed: BTreeMap::new(),
        }
    }

    fn of_status(&mut self, now: Time, event: &str, uid: &Uid, status: &NodeStatus) -> NodeSnapshot {
        let found = status.lifecycle_events.iter().find(|known| known.name == event);
        let is_claimed = found.is_some_and(|found| found.claim != ClaimStatus::Pending);
        // A checkpoint of another drain does not apply to this one.
        let Some(mark) = status
            .node
            .checkpoint
            .as_ref()
            .filter(|mark| mark.id == uid.as_str())
        else {
            return NodeSnapshot {
                deadline: found.and_then(LifecycleEvent::deadline),
                ..self.without_facts(if is_claimed { "claimed" } else { "requested" }.to_owned())
            };
        };
        let (view, phase) = (status.current_driver_status(now), status.phase(mark, now));
        let plan = view.and_then(|view| view.plan.as_ref());
        let first = plan.filter(|_| !self.planned).map(|plan| plan.leaving);
        self.planned |= plan.is_some();
        let held = status.remaining_pods(now);
        let pods = held
            .iter()
            .map(|held| (held.pod.id.uid.clone(), held.is_leaving(view)));
        let without_room = status.without_room(&held, now);
        let pods = self.count(pods.collect(), without_room, first);
        let hooks = open_hooks(mark, view).into_iter().map(|hook| {
            let of = status.subject_text(&hook.subject);
            WaitsFor::Hook(hook, of)
        });
        let mut waits_for: Vec<_> = hooks.collect();
        let words = match status.lease_holder.is_abandoned() {
            true => "abandoned",
            false => phase_words(phase, !waits_for.is_empty()),
        };
        let volumes = view.and_then(|view| view.volumes.clone());
        waits_for.extend(volumes.map(WaitsFor::Volumes));
        waits_for.extend(held.into_iter().filter_map(|held| {
            let reason = held.reason.filter(|reason| *reason != Reason::Kept)?;
            Some(WaitsFor::Pod(held.pod.id.clone(), reason))
        }));
        NodeSnapshot {
            deadline: mark.deadline.or_else(|| found.and_then(LifecycleEvent::deadline)),
            estimate: view.and_then(|view| view.estimate),
            pods,
            wave: view
                .and_then(|view| view.wave.clone())
                .filter(|_| phase == Phase::Evicting),
            waits_for,
            closed: closed(&status.budgets),
            ..self.without_facts(words.to_owned())
        }
    }

    /// Returns the number of pods that are gone, and the number to be evicted in all. `here`: the pods on the node,
    /// each with whether it is to be evicted, if known. `without_room`: how many are to be evicted without being known.
    /// `planned`: the planned number of evictions, on its first report.
    fn count(
        &mut self,
        here: Vec<(Uid, Option<bool>)>,
        without_room: usize,
        planned: Option<u32>,
    ) -> Option<(usize, usize)> {
        let known = self.leaving.len();
        for (uid, is_leaving) in &here {
            match is_leaving {
                Some(true) => {
                    self.leaving.insert(uid.clone());
                }
                Some(false) => {
                    self.leaving.remove(uid);
                }
                None => {}
            }
        }
        let still = here.iter().filter(|(uid, _)| self.leaving.contains(uid)).count();
        if let Some(planned) = planned {
            let planned = usize::try_from(planned).unwrap_or(usize::MAX);
            self.unseen = planned.saturating_sub(self.leaving.len() + without_room);
        } else {
            // Of the pods without room, those that are not known now are gone.
            let fewer = self.without_room.saturating_sub(without_room);
            self.unseen += fewer.saturating_sub(self.leaving.len().saturating_sub(known));
        }
        self.without_room = without_room;
        let of = self.leaving.len() + self.unseen + without_room;
        (self.planned && of > 0).then(|| (of - still - without_room, of))
    }
}

fn closed<'a>(budgets: impl IntoIterator<Item = &'a Budget>) -> BTreeMap<(String, String), String> {
    let opening = budgets.into_iter().filter_map(|budget| {
        let key = (budget.namespace.clone(), budget.name.clone());
        Some((key, what_opens(budget)?.to_string()))
    });
    opening.collect()
}

#[cfg(test)]
mod tests;
