//! What is worth telling of a node between two looks at it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_api::{ClaimStatus, LifecycleEvent};
use scupper_engine::{Checkpoint, Node, Phase, PodRef, Reason, Time, Uid};

use scupper_report::{
    DrainStatus, FollowEvent, ForcedNames, HookKey, HookStatus, MoreWaits, NamedWaits, NodeStatus,
    PlanSummary, VolumesStatus, WaveStatus, is_repeated, not_ready, open_hooks, subject_text,
};

/// Conditions that say something of a drain.
const CONDITIONS: [&str; 2] = ["DrainInProgress", "Drained"];

/// So long what pods wait for is held back until the plan is there. A driver without the right to publish it never does.
const PLAN_SOON: Duration = Duration::from_secs(3);

/// What was reported of a node.
#[derive(Default)]
pub(super) struct StatusDiff {
    pods: BTreeMap<Uid, PodRef>,
    /// The name of the reason why each pod waits.
    waits: BTreeMap<Uid, &'static str>,
    named_waits: NamedWaits,
    /// Every pod that was seen.
    names: BTreeMap<Uid, PodRef>,
    plan: Option<PlanSummary>,
    /// When the node first showed a drain.
    marked: Option<Time>,
    wave: Option<WaveStatus>,
    hooks: BTreeMap<HookKey, HookStatus>,
    volumes: Option<VolumesStatus>,
    /// When it will probably end was reported.
    estimated: bool,
    /// Pods that the driver has deleted shortly before the deadline, and how many more.
    forced: BTreeSet<String>,
    more_forced: u32,
    /// Another user or process lifted the cordon.
    lifted: bool,
    conditions: Option<BTreeMap<String, (String, String)>>,
    not_ready: bool,
    claim: Option<ClaimStatus>,
    deadline: Option<Time>,
    /// What is done at the node before this one may begin.
    behind: Option<String>,
}

impl StatusDiff {
    /// A line has reported that this pod waits, and it still does.
    pub(super) fn is_waiting(&self, pod: &PodRef) -> bool {
        self.waits.contains_key(&pod.uid)
    }

    /// What has become different.
    pub(super) fn observe(
        &mut self,
        event: &LifecycleEvent,
        status: &NodeStatus,
        now: Time,
    ) -> Vec<FollowEvent> {
        let pods = status.pods.iter();
        self.names
            .extend(pods.map(|pod| (pod.id.uid.clone(), pod.id.clone())));
        let mut diff: Vec<_> = self.of_event(&event.name, status).into_iter().collect();
        diff.extend(self.of_readiness(&status.node, now));
        let is_queued = self.of_queue(event, status, &mut diff);
        let mut of_node = self.of_conditions(status);
        // The status of another drain says nothing about this one.
        let mark = status.node.checkpoint.as_ref();
        if let Some(mark) = mark.filter(|mark| mark.id == event.uid) {
            let view = status.driver.as_ref().filter(|view| view.drain == event.uid);
            if let Some(view) = view {
                of_node.extend(self.of_view(view));
            }
            of_node.extend(self.of_cordon(&status.node, mark));
            of_node.extend(self.of_hooks(mark, view));
        }
        of_node.extend(self.of_pods(status, now));
        of_node.extend(self.of_waits(status, now));
        // What happens to the node until its turn has come is the other one's.
        if !is_queued {
            diff.append(&mut of_node);
        }
        diff
    }

    /// What was there before the request is not reported.
    pub(super) fn begin(
        &mut self,
        event: &LifecycleEvent,
        status: &NodeStatus,
        now: Time,
    ) -> Vec<FollowEvent> {
        let before = self.observe(event, status, now);
        self.behind = None;
        before
    }

    /// Something else is done at the node first.
    pub(super) const fn is_queued(&self) -> bool {
        self.behind.is_some()
    }

    /// What is done first: `LifecycleEvent drain-worker-1-x7d2p`.
    pub(super) fn queued_behind(&self) -> Option<&str> {
        self.behind.as_deref()
    }

    /// Whether something else is done at the node before this one may begin.
    fn of_queue(&mut self, event: &LifecycleEvent, status: &NodeStatus, diff: &mut Vec<FollowEvent>) -> bool {
        let behind = ahead_of(event, status);
        if let Some(behind) = &behind
            && self.behind.as_ref() != Some(behind)
        {
            diff.push(FollowEvent::Queued {
                behind: behind.clone(),
            });
        }
        self.behind = behind;
        self.behind.is_some()
    }

    fn of_event(&mut self, name: &str, status: &NodeStatus) -> Option<FollowEvent> {
        let event = status.lifecycle_events.iter().find(|event| event.name == name)?;
        let (claim, deadline) = (Some(&event.claim), event.deadline());
        let known = self.claim.as_ref() == claim && self.deadline == deadline;
        (self.claim, self.deadline) = (claim.cloned(), deadline);
        (!known && event.claim != ClaimStatus::Pending).then(|| FollowEvent::State {
            state: event.claim.as_str().to_owned(),
            deadline,
        })
    }

    /// Once for each time that it is not.
    fn of_readiness(&mut self, node: &Node, now: Time) -> Option<FollowEvent> {
        let words = not_ready(node, now);
        let known = std::mem::replace(&mut self.not_ready, words.is_some());
        words
            .filter(|_| !known)
            .map(|words| FollowEvent::NotReady { words })
    }

    /// What was there before is not reported.
    fn of_conditions(&mut self, status: &NodeStatus) -> Vec<FollowEvent> {
        let ours = status.node.conditions.iter();
        let ours = ours.filter(|condition| CONDITIONS.contains(&condition.kind.as_str()));
        let now: BTreeMap<_, _> = ours
            .map(|condition| {
                let said = (condition.status.clone(), condition.message.clone());
                (condition.kind.clone(), said)
            })
            .collect();
        let Some(before) = self.conditions.replace(now.clone()) else {
            return Vec::new();
        };
        let changed = now
            .into_iter()
            .filter(|(kind, said)| before.get(kind) != Some(said));
        let changed: Vec<_> = changed.collect();
        let all: Vec<_> = changed
            .iter()
            .map(|(kind, (status, message))| (kind.as_str(), status.as_str(), message.as_str()))
            .collect();
        let seen = all.iter().map(|&(kind, status, message)| FollowEvent::Condition {
            condition: format!("{kind}={status}"),
            message: message.to_owned(),
            is_repeated: is_repeated((kind, status, message), &all),
        });
        seen.collect()
    }

    /// The plan, the waves, the volumes and the forced pods, from the status that the driver publishes.
    fn of_view(&mut self, view: &DrainStatus) -> Vec<FollowEvent> {
        let mut diff = Vec::new();
        if view.plan.is_some() && view.plan != self.plan {
            self.plan.clone_from(&view.plan);
            let names = self.names.clone();
            let force = view.force.clone();
            let planned = |plan| FollowEvent::Planned { plan, names, force };
            diff.extend(view.plan.clone().map(planned));
        }
        if let Some(estimate) = view.estimate
            && !std::mem::replace(&mut self.estimated, true)
        {
            diff.push(FollowEvent::Estimated(estimate));
        }
        if let Some(wave) = view.wave.as_ref().filter(|wave| self.wave.as_ref() != Some(wave)) {
            self.wave = Some(wave.clone());
            let own = view.pods.iter().filter(|pod| pod.wave == wave.name).count();
            diff.push(FollowEvent::Wave {
                wave: wave.clone(),
                pods: (view.more == 0).then_some(own),
            });
        }
        let left = |it: &Option<VolumesStatus>| it.as_ref().map(|volumes| volumes.left.clone());
        if left(&view.volumes) != left(&self.volumes) {
            self.volumes.clone_from(&view.volumes);
            let volumes = view.volumes.clone();
            diff.extend(volumes.map(|volumes| FollowEvent::Volumes { volumes }));
        }
        if let Some(force) = &view.force {
            diff.extend(self.of_forced(&force.deleted));
        }
        diff
    }

    /// A process that continues the drain publishes only the pods that it deletes itself.
    fn of_forced(&mut self, deleted: &ForcedNames) -> Vec<FollowEvent> {
        let named = deleted.named.iter();
        let new = named.filter(|name| self.forced.insert((*name).clone()));
        let names = self.names.values();
        let mut diff: Vec<_> = new
            .filter_map(|name| names.clone().find(|pod| pod.to_string() == *name))
            .map(|pod| FollowEvent::Forced { pod: pod.clone() })
            .collect();
        let named = u32::try_from(deleted.named.len()).unwrap_or(u32::MAX);
        let more = deleted.count.saturating_sub(named);
        if let Some(pods @ 1..) = more.checked_sub(self.more_forced) {
            self.more_forced = more;
            diff.push(FollowEvent::MoreForced { pods });
        }
        diff
    }

    fn of_hooks(&mut self, mark: &Checkpoint, view: Option<&DrainStatus>) -> Vec<FollowEvent> {
        let mut diff = Vec::new();
        for hook in open_hooks(mark, view) {
            let known = self.hooks.get(&hook.key());
            // The node shows that a hook runs; only the driver knows more.
            if known.is_none_or(|known| hook.has_progress() && !known.has_same_progress(&hook)) {
                let of = self.subject(&hook);
                self.hooks.insert(hook.key(), hook.clone());
                diff.push(FollowEvent::Hook { hook, of });
            }
        }
        for key in &mark.done {
            if let Some(hook) = self.hooks.remove(key) {
                let of = self.subject(&hook);
                diff.push(FollowEvent::HookDone { hook, of });
            }
        }
        diff
    }

    fn subject(&self, hook: &HookStatus) -> String {
        subject_text(&hook.subject, |uid| self.names.get(uid).map(PodRef::to_string))
    }

    fn of_cordon(&mut self, node: &Node, mark: &Checkpoint) -> Option<FollowEvent> {
        let lifted = !node.unschedulable && matches!(mark.phase, Phase::Holding | Phase::Evicting);
        let was_lifted = std::mem::replace(&mut self.lifted, lifted);
        (lifted && !was_lifted).then_some(FollowEvent::Uncordoned)
    }

    fn of_pods(&mut self, status: &NodeStatus, now: Time) -> Vec<FollowEvent> {
        let here = status.pods.iter();
        let here = here.map(|pod| (pod.id.uid.clone(), pod.id.clone()));
        let before = std::mem::replace(&mut self.pods, here.collect());
        let gone: Vec<_> = before
            .into_iter()
            .filter(|(uid, _)| !self.pods.contains_key(uid))
            .collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let remaining = status.pods_to_evict(now);
        let later = (0..gone.len()).rev();
        let of = |((_, pod), later)| FollowEvent::PodGone {
            pod,
            remaining: remaining.map(|remaining| remaining + later),
        };
        gone.into_iter().zip(later).map(of).collect()
    }

    fn of_waits(&mut self, status: &NodeStatus, now: Time) -> Vec<FollowEvent> {
        // The status with the plan comes a moment after the cordon, and is read first.
        let marked = status
            .node
            .checkpoint
            .as_ref()
            .map(|_| *self.marked.get_or_insert(now));
        let is_new = marked.is_some_and(|since| now.since(since) < PLAN_SOON);
        if self.plan.is_none() && status.driver.is_none() && is_new {
            return Vec::new();
        }
        let mut new = Vec::new();
        let mut waits = BTreeMap::new();
        for (pod, reason) in status.blocked_pods(now) {
            waits.insert(pod.uid.clone(), reason.name());
            if self.waits.get(&pod.uid) != Some(&reason.name()) {
                new.push((pod.clone(), reason));
            }
        }
        for pod in self.waits.keys().filter(|pod| !waits.contains_key(pod)) {
            self.named_waits.forget(pod);
        }
        self.waits = waits;
        self.pods_wait(new)
    }

    /// The first of the pods that wait for the same have a line each; the others are counted.
    pub(super) fn pods_wait(&mut self, waiting: Vec<(PodRef, Reason)>) -> Vec<FollowEvent> {
        let (mut diff, mut more) = (Vec::new(), Vec::new());
        for (pod, reason) in waiting {
            let is_counted = !reason.stays() && !self.named_waits.names(&pod, &reason);
            if is_counted {
                more.push((pod.clone(), reason.clone()));
            }
            diff.push(FollowEvent::PodWaits {
                pod,
                reason,
                is_counted,
            });
        }
        let more = MoreWaits::of(more.iter().map(|(pod, reason)| (pod, reason)));
        diff.extend(more.into_iter().map(FollowEvent::MoreWait));
        diff
    }
}

/// Another drain of the node: a claimed LifecycleEvent, or a checkpoint.
fn ahead_of(event: &LifecycleEvent, status: &NodeStatus) -> Option<String> {
    let mark = status.node.checkpoint.as_ref();
    let mark = mark.filter(|mark| mark.is_under_way());
    if mark.is_some_and(|mark| mark.id == event.uid) {
        return None;
    }
    let mut others = status
        .lifecycle_events
        .iter()
        .filter(|other| other.name != event.name);
    match (others.find(|other| other.claim == ClaimStatus::Claimed), mark) {
        (Some(other), _) => Some(format!("LifecycleEvent {}", other.name)),
        (None, Some(mark)) => Some(format!("{} {}", mark.trigger, mark.name)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests;
