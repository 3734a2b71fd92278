//! Where a node stands, for people and for machines: by what the process that drains it has written on it, and, where it
//! has written nothing or not for long, by what the API server shows. Which of the two it is, is said.

mod advice;
mod budgets;
mod json;
mod lease_holder;
mod lines;
mod lookups;
mod reasons;
mod table;

use std::collections::BTreeMap;

use scupper_engine::{Budget, Checkpoint, Controller, Duration, Node, Phase, Pod, PodRef, Reason, Time, Uid};

use super::drain_status::{DrainStatus, PodStatus};
use super::messages::needs_no_report;

pub use json::status_to_json;
pub use lease_holder::LeaseHolder;
pub use lines::status_lines;
pub(super) use lines::{phase_text, reason_text, subject, subject_text};
pub use lookups::{BudgetDetails, StatusDetails, UnreadyPodDetails, WorkloadDetails};
pub use table::status_table;

/// A process that drains tells at least once a minute; one that has missed two is taken for dead.
const FRESH: Duration = Duration::from_secs(150);

/// Everything that the API server shows of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node.
    pub node: Node,
    /// What the process that drains it wrote of that.
    pub driver: Option<DrainStatus>,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// All budgets that may be read.
    pub budgets: Vec<Budget>,
    /// Wishes for the node that are there.
    pub lifecycle_events: Vec<LifecycleEventStatus>,
    /// Who holds its lease, while a drain has not ended.
    pub lease_holder: LeaseHolder,
    /// What was looked up about pods that something blocks.
    pub details: StatusDetails,
}

/// A LifecycleEvent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleEventStatus {
    /// Its name.
    pub name: String,
    /// Which transition it asks for.
    pub transition: String,
    /// How far it has come, in the API's word.
    pub state: String,
    /// Its deadline.
    pub deadline: Option<Time>,
    /// It is being deleted.
    pub deleting: bool,
}

/// Why a pod is still there.
#[derive(Debug)]
pub(super) struct RemainingPod<'a> {
    pub(super) pod: &'a Pod,
    pub(super) reason: Option<Reason>,
    /// The process that drains says so.
    from_driver: bool,
    wave: &'a str,
    /// Since when it has had this reason, where the process that drains says so.
    since: Option<Time>,
    /// For how long; once the drain is over, for how long it had had it by then.
    waited: Option<Duration>,
}

impl RemainingPod<'_> {
    /// What manages the pod, where something blocks it: what was looked up, else its controller.
    fn workload(&self, status: &NodeStatus) -> Option<WorkloadDetails> {
        let blocked = self.reason.as_ref().filter(|reason| !needs_no_report(reason));
        let controller = blocked.and(self.pod.controller.as_ref())?;
        let known = status.details.workloads.get(&controller.uid).cloned();
        Some(known.unwrap_or_else(|| WorkloadDetails {
            kind: controller.kind.clone(),
            name: controller.name.clone(),
            ready: None,
        }))
    }
}

impl NodeStatus {
    /// The same without what changes while nothing happens.
    #[must_use]
    pub fn without_heartbeats(&self) -> Self {
        let mut known = self.clone();
        known.node.resource_version.clear();
        if let Some(view) = &mut known.driver {
            view.at = Time::default();
        }
        known
    }

    /// What the process that drains knows, or knew at the end. One that is gone knows nothing.
    pub(super) fn current_driver_status(&self, now: Time) -> Option<&DrainStatus> {
        let is_over = self.is_over();
        let is_alive = |view: &DrainStatus| !self.lease_holder.is_abandoned() && now.since(view.at) < FRESH;
        let is_fresh = |view: &&DrainStatus| view.ended.is_some() == is_over && (is_over || is_alive(view));
        self.driver.as_ref().filter(is_fresh)
    }

    /// Where its drain stands. That the first wave has begun is not written into the checkpoint.
    pub(super) fn phase(&self, mark: &Checkpoint, now: Time) -> Phase {
        let is_in_wave = self
            .current_driver_status(now)
            .is_some_and(|view| view.wave.is_some());
        match mark.phase {
            Phase::Holding if is_in_wave => Phase::Evicting,
            phase => phase,
        }
    }

    /// The drain that the node tells of has ended.
    fn is_over(&self) -> bool {
        let mark = self.node.checkpoint.as_ref();
        mark.is_none_or(|mark| mark.phase == Phase::Finished)
    }

    /// The policies that still have something to undo, although the node takes pods again: it was uncordoned by others,
    /// and no process has called them since.
    pub(super) fn to_undo(&self) -> Vec<&str> {
        let mark = self.node.checkpoint.as_ref();
        let mark = mark.filter(|mark| mark.phase == Phase::Finished && !self.node.unschedulable);
        let policies = mark.into_iter().flat_map(|mark| &mark.to_undo);
        policies.map(String::as_str).collect()
    }

    /// Every pod, and why it is still there.
    pub(super) fn remaining_pods(&self, now: Time) -> Vec<RemainingPod<'_>> {
        let view = self.current_driver_status(now);
        // What was so at the end does not grow any longer.
        let by = view.map_or(now, |view| if view.ended.is_some() { view.at } else { now });
        let told: BTreeMap<&Uid, &PodStatus> = view
            .into_iter()
            .flat_map(|view| view.pods.iter().map(|pod| (&pod.uid, pod)))
            .collect();
        let mut pods: Vec<&Pod> = self.pods.iter().collect();
        pods.sort_by(|one, other| one.id.cmp(&other.id));
        let mut all = Vec::with_capacity(pods.len());
        for pod in pods {
            let known = told.get(&pod.id.uid);
            let (reason, is_told) = self.reason(pod, known.map(|known| &known.reason), now);
            let since = known.and_then(|known| known.since).filter(|_| is_told);
            all.push(RemainingPod {
                pod,
                reason,
                from_driver: is_told,
                wave: known.map_or("", |known| &known.wave),
                since,
                waited: since.map(|since| by.since(since)),
            });
        }
        all
    }

    /// The controllers of pods that something blocks, and the budgets that block pods: what is worth looking up.
    pub fn blocked(&self, now: Time) -> (Vec<(&PodRef, &Controller)>, Vec<&Budget>) {
        let held = self.remaining_pods(now);
        let blocked = held
            .iter()
            .filter(|held| held.reason.as_ref().is_some_and(|it| !needs_no_report(it)));
        let controllers = blocked.filter_map(|held| Some((&held.pod.id, held.pod.controller.as_ref()?)));
        let budgets = self.budgets.iter();
        let blocks = |budget: &&Budget| {
            let mut blocking = held.iter().filter_map(|held| budgets::blocking(self, held));
            blocking.any(|it| std::ptr::eq(it, *budget))
        };
        (controllers.collect(), budgets.filter(blocks).collect())
    }

    /// Every pod on the node that is to leave, and why it is there, in words.
    pub fn remaining(&self, now: Time) -> Vec<(&PodRef, &'static str, String)> {
        let leaving = self.remaining_pods(now).into_iter().filter_map(|held| {
            let reason = held.reason.filter(|reason| *reason != Reason::Kept)?;
            Some((&held.pod.id, reason.name(), reason_text(&reason, now)))
        });
        leaving.collect()
    }

    /// Pods that are held by more than their turn and their own end, why in a word, and the facts.
    pub fn stuck(&self, now: Time) -> Vec<(&PodRef, &'static str, String)> {
        let stuck = self.remaining_pods(now).into_iter().filter_map(|held| {
            let reason = held.reason?;
            (!needs_no_report(&reason)).then(|| (&held.pod.id, reason.name(), reason_text(&reason, now)))
        });
        stuck.collect()
    }

    /// The API server does not say which budgets there are too many of.
    fn with_names(&self, pod: &Pod, reason: Reason) -> Reason {
        match reason {
            Reason::MoreThanOneBudget { message } => Reason::MoreThanOneBudget {
                message: reasons::names_of_budgets(pod, &self.budgets).unwrap_or(message),
            },
            reason => reason,
        }
    }

    /// Its own end shows by itself, and sooner than anybody can write it.
    fn reason(&self, pod: &Pod, told: Option<&Reason>, now: Time) -> (Option<Reason>, bool) {
        let seen = || reasons::reason(pod, &self.node, &self.budgets, now);
        if pod.deletion.is_some() {
            return (seen(), false);
        }
        if let Some(reason) = told {
            return (Some(self.with_names(pod, reason.clone())), true);
        }
        match self.current_driver_status(now) {
            // It names every pod that is to leave, so the others stay.
            Some(view) if view.more == 0 && pod.created < view.at && !self.is_over() => {
                (Some(Reason::Kept), true)
            }
            _ => (seen(), false),
        }
    }
}

#[cfg(test)]
mod tests;
