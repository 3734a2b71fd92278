//! The state of a node, for people and for machines: from the status that the draining process publishes on the node,
//! or, if that is missing or outdated, from the API server. The output names the source.

mod advice;
mod budgets;
mod json;
mod lease_holder;
mod lines;
mod lookups;
mod overview;
mod reasons;
mod table;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_api::{ClaimStatus, LifecycleEvent, Workload};
use scupper_checkpoint::LeasedDrain;
use scupper_engine::{
    Budget, Checkpoint, Controller, Intent, Node, Phase, Pod, PodRef, Reason, Subject, Time, Uid,
};

use super::drain_status::{DrainStatus, HookStatus, PodStatus, open_hooks, subject_text};
use super::messages::needs_no_report;
use super::pod_list::PodList;
use super::undo::LeftToUndo;

pub use advice::{release_text, unreleased_text};
pub(super) use budgets::same_reason_key;
pub use json::status_to_json;
pub use lease_holder::LeaseHolder;
pub use lines::status_lines;
pub(super) use lines::{UNDONE, phase_words};
pub use lookups::StatusDetails;
pub use overview::{NodeSummary, overview_lines};
pub use table::status_table;

/// Maximum age of a published status. A draining process publishes at least once a minute; after two missed updates it
/// counts as dead.
const FRESH: Duration = Duration::from_secs(150);

/// The state of a node on the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node.
    pub node: Node,
    /// The status that the draining process published.
    pub driver: Option<DrainStatus>,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// All budgets that the caller may read.
    pub budgets: Vec<Budget>,
    /// The LifecycleEvents of the node.
    pub lifecycle_events: Vec<LifecycleEvent>,
    /// The holder of its Lease, if a drain has not ended.
    pub lease_holder: LeaseHolder,
    /// The drain of that holder, or of the last one.
    pub leased_drain: Option<LeasedDrain>,
    /// Additional facts about blocked pods.
    pub details: StatusDetails,
}

/// A pod on the node, and why it is still there.
#[derive(Debug)]
pub(super) struct RemainingPod<'a> {
    pub(super) pod: &'a Pod,
    pub(super) reason: Option<Reason>,
    /// The reason comes from the draining process.
    from_driver: bool,
    wave: &'a str,
    /// Since when the reason has applied, according to the draining process.
    since: Option<Time>,
    /// How long the reason has applied; after the drain, how long it had applied at the end.
    waited: Option<Duration>,
}

impl RemainingPod<'_> {
    /// Whether it is to be evicted, according to the draining process.
    pub(super) fn is_leaving(&self, view: Option<&DrainStatus>) -> Option<bool> {
        let view = view.filter(|view| view.plan.is_some())?;
        if let Some(reported) = view.pods.iter().find(|pod| pod.uid == self.pod.id.uid) {
            return Some(!reported.reason.stays());
        }
        match &self.reason {
            Some(reason) if reason.stays() => Some(false),
            _ => None,
        }
    }

    /// How much it says of the wait of several pods: the longest wait, and the longest that is still ahead.
    fn weight(&self) -> (Option<Duration>, Time, Reverse<Time>) {
        let (until, since) = match &self.reason {
            Some(Reason::Terminating { until }) => (*until, Time::default()),
            Some(Reason::TerminatingPastGrace { since, .. }) => (Time::default(), *since),
            _ => (Time::default(), Time::default()),
        };
        (self.waited, until, Reverse(since))
    }

    /// The workload of a blocked pod: the one that was looked up, otherwise the pod's controller.
    fn workload(&self, status: &NodeStatus) -> Option<Workload> {
        let blocked = self.reason.as_ref().filter(|reason| !needs_no_report(reason));
        let controller = blocked.and(self.pod.controller.as_ref())?;
        let known = status.details.workloads.get(&controller.uid).cloned();
        Some(known.unwrap_or_else(|| Workload {
            kind: controller.kind.clone(),
            name: controller.name.clone(),
            ready: None,
        }))
    }
}

impl NodeStatus {
    /// A copy without the fields that change even if nothing happens.
    #[must_use]
    pub fn without_heartbeats(&self) -> Self {
        let mut known = self.clone();
        known.node.resource_version.clear();
        if let Some(view) = &mut known.driver {
            view.at = Time::default();
        }
        known
    }

    /// The status of the draining process, or its last one if the drain has ended. `None` if that process is gone.
    pub(super) fn current_driver_status(&self, now: Time) -> Option<&DrainStatus> {
        let is_over = self.is_over();
        let is_alive = |view: &DrainStatus| !self.lease_holder.is_abandoned() && now.since(view.at) < FRESH;
        let is_fresh = |view: &&DrainStatus| view.ended.is_some() == is_over && (is_over || is_alive(view));
        self.driver.as_ref().filter(is_fresh)
    }

    /// The phase of the drain. The checkpoint does not record the start of the first wave, and that of the wait for volumes
    /// only once some are attached.
    pub(super) fn phase(&self, mark: &Checkpoint, now: Time) -> Phase {
        let is_in_wave = self
            .current_driver_status(now)
            .is_some_and(|view| view.wave.is_some());
        match mark.phase {
            Phase::Holding if is_in_wave => Phase::Evicting,
            phase => phase,
        }
    }

    /// The drain that is under way and has left nothing on the node yet.
    pub fn planning(&self) -> Option<&LeasedDrain> {
        self.unmarked_drain().filter(|drain| !self.continues(drain))
    }

    /// The drain of a process that continues the one of the node's mark.
    pub(super) fn continuation(&self) -> Option<&LeasedDrain> {
        self.unmarked_drain().filter(|drain| self.continues(drain))
    }

    /// The drain of the process that holds the Lease, unless the mark is its own.
    fn unmarked_drain(&self) -> Option<&LeasedDrain> {
        let mark = self.node.checkpoint.as_ref();
        let is_marked = |id: &String| mark.is_some_and(|mark| mark.id == *id);
        let is_held = matches!(self.lease_holder, LeaseHolder::Held { .. });
        let leased = self.leased_drain.as_ref().filter(|_| is_held);
        leased.filter(|drain| !is_marked(&drain.id))
    }

    /// There is one drain at a time under the Lease, so one with the same intent continues that of the mark.
    fn continues(&self, drain: &LeasedDrain) -> bool {
        let is_same = |mark: &Checkpoint| mark.is_under_way() && !mark.ahead && mark.intent == drain.intent;
        self.node.checkpoint.as_ref().is_some_and(is_same)
    }

    /// It is deleted, and no drain is under way that would have to end first: its driver has not released it.
    pub(super) fn waits_for_release(&self, event: &LifecycleEvent) -> bool {
        event.deleting && event.claim == ClaimStatus::Claimed && self.is_over() && self.planning().is_none()
    }

    /// What is to be said of the process that holds the Lease, or held it. A status that it has published since its last
    /// renewal shows that it works.
    pub(super) fn holder_text(&self, now: Time) -> Option<String> {
        let published = self.driver.as_ref().map(|view| view.at);
        match self.lease_holder {
            LeaseHolder::Held {
                silent_since: Some(since),
                ..
            } if published.is_some_and(|at| at > since) => None,
            _ => self.lease_holder.text(now),
        }
    }

    /// Whether the drain of this node has ended.
    fn is_over(&self) -> bool {
        let mark = self.node.checkpoint.as_ref();
        mark.is_none_or(|mark| mark.phase == Phase::Finished)
    }

    /// Another client has lifted the cordon of the drain, which asks no pod to leave meanwhile. Its process may not have
    /// published that yet.
    pub(super) fn is_paused(&self) -> bool {
        let mark = self.node.checkpoint.as_ref();
        let needs_cordon = |mark: &Checkpoint| mark.intent == Intent::Drain && mark.phase.needs_cordon();
        !self.node.unschedulable && !self.lease_holder.is_abandoned() && mark.is_some_and(needs_cordon)
    }

    /// The operator has said for this drain that the node's machine is off: its process published it, or has tainted
    /// the node.
    fn machine_is_off(&self, mark: &Checkpoint) -> bool {
        let published = self.driver.as_ref().filter(|view| view.drain == mark.id);
        let tainted = self.node.annotations.get(Node::OUT_OF_SERVICE);
        published.is_some_and(|view| view.machine_is_off) || tainted == Some(&mark.id)
    }

    /// What policies should have undone by now.
    pub(super) fn left_to_undo(&self) -> LeftToUndo {
        let is_held = matches!(self.lease_holder, LeaseHolder::Held { .. });
        LeftToUndo::of(&self.node, self.leased_drain.as_ref().filter(|_| !is_held))
    }

    /// Without a drain, only pods that are ending are listed; others are counted.
    fn is_listed(&self, held: &RemainingPod<'_>, list: PodList) -> bool {
        let is_idle = self.node.checkpoint.is_none() && self.planning().is_none();
        list == PodList::Each || !is_idle || held.pod.deletion.is_some()
    }

    fn unlisted(&self, held: &[RemainingPod<'_>], list: PodList) -> usize {
        held.iter().filter(|held| !self.is_listed(held, list)).count()
    }

    /// Every pod on the node, and why it is still there.
    pub(super) fn remaining_pods(&self, now: Time) -> Vec<RemainingPod<'_>> {
        let view = self.current_driver_status(now);
        // Waiting times stop growing when the drain ends.
        let by = view.map_or(now, |view| if view.ended.is_some() { view.at } else { now });
        let reported: BTreeMap<&Uid, &PodStatus> = view
            .into_iter()
            .flat_map(|view| view.pods.iter().map(|pod| (&pod.uid, pod)))
            .collect();
        let mut pods: Vec<&Pod> = self.pods.iter().collect();
        pods.sort_by(|one, other| one.id.cmp(&other.id));
        let mut all = Vec::with_capacity(pods.len());
        for pod in pods {
            let known = reported.get(&pod.id.uid);
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

    /// The controllers of blocked pods, and the budgets that block pods: the objects that are worth looking up.
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

    /// How many pods are still to be evicted; `None`: the draining process has not published a plan.
    pub fn pods_to_evict(&self, now: Time) -> Option<usize> {
        let view = self.current_driver_status(now);
        view.filter(|view| view.plan.is_some())?;
        let held = self.remaining_pods(now);
        let leaving = held.iter().filter(|held| held.is_leaving(view) == Some(true));
        Some(leaving.count() + self.without_room(&held, now))
    }

    /// How many of the pods here are to be evicted, and are not in the published status, which had no room for them.
    pub(super) fn without_room(&self, held: &[RemainingPod<'_>], now: Time) -> usize {
        let Some(view) = self.current_driver_status(now).filter(|view| view.more > 0) else {
            return 0;
        };
        let told: BTreeSet<_> = view.pods.iter().map(|pod| &pod.uid).chain(&view.kept).collect();
        let is_untold =
            |held: &&RemainingPod<'_>| !told.contains(&held.pod.id.uid) && held.pod.created < view.at;
        let here = held.iter().filter(is_untold).count();
        here.min(usize::try_from(view.more).unwrap_or(usize::MAX))
    }

    /// Every pod that is still to be evicted, and why it is still there.
    pub fn remaining(&self, now: Time) -> Vec<(&PodRef, Reason)> {
        let leaving = self.remaining_pods(now).into_iter().filter_map(|held| {
            let reason = held.reason.filter(|reason| *reason != Reason::Kept)?;
            Some((&held.pod.id, reason))
        });
        leaving.collect()
    }

    /// Those of them that are held by more than their turn and their own termination.
    pub fn blocked_pods(&self, now: Time) -> Vec<(&PodRef, Reason)> {
        let mut blocked = self.remaining(now);
        blocked.retain(|(_, reason)| !needs_no_report(reason));
        blocked
    }

    /// The hooks that have not finished.
    fn hooks(&self, now: Time) -> Vec<HookStatus> {
        let mark = self.node.checkpoint.as_ref();
        let published = self.current_driver_status(now);
        mark.map_or_else(Vec::new, |mark| open_hooks(mark, published))
    }

    /// The subject of a hook on this node, as text.
    pub(super) fn subject_text(&self, subject: &Subject) -> String {
        subject_text(subject, |uid| {
            let pod = self.pods.iter().find(|pod| pod.id.uid == *uid);
            pod.map(|pod| pod.id.to_string())
        })
    }

    /// Adds the budgets' names to a reason, because the API server does not name them.
    fn with_names(&self, pod: &Pod, reason: Reason) -> Reason {
        match reason {
            Reason::MoreThanOneBudget { message } => Reason::MoreThanOneBudget {
                message: reasons::names_of_budgets(pod, &self.budgets).unwrap_or(message),
            },
            reason => reason,
        }
    }

    /// The reason of a pod, and whether the draining process gave it. Termination is visible on the pod itself, before
    /// any process can publish it.
    fn reason(&self, pod: &Pod, reported: Option<&Reason>, now: Time) -> (Option<Reason>, bool) {
        let seen = || reasons::reason(pod, &self.node, &self.budgets, now);
        if pod.deletion.is_some() {
            return (seen(), false);
        }
        if let Some(reason) = reported {
            return (Some(self.with_names(pod, reason.clone())), true);
        }
        let is_kept = |view: &&DrainStatus| view.more == 0 || view.kept.contains(&pod.id.uid);
        match self.current_driver_status(now).filter(is_kept) {
            // The status names every pod that is to be evicted, or this one as kept.
            Some(view) if pod.created < view.at && !self.is_over() => (Some(Reason::Kept), true),
            _ => (seen(), false),
        }
    }
}

#[cfg(test)]
mod tests;
