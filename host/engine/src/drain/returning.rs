//! Pods that come to the cordoned node: those that come back are evicted as often as the settings say, and then they
//! stay, as do those that the settings do not allow to be evicted. A drain that chased them would never end.
//!
//! A pod that neither tolerates the cordon nor came long after it is none of these: the scheduler bound it before it
//! had seen the cordon. Such a pod holds the drain, or is evicted some more times.

use core::time::Duration;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::plan_state::{PodState, owner_of};
use crate::filter::HOST_POLICY;
use crate::{Decision, LEAST_RACES, Pod, PodRef, Reason, Time, Verdict};

/// A scheduler has seen the cordon by then.
const SEEN_BY_SCHEDULERS: Duration = Duration::from_secs(30);

/// Since when the node has been cordoned, as far as this process and those before it have seen.
#[derive(Debug, Default)]
pub(super) struct Cordoned {
    since: Option<Time>,
}

impl Cordoned {
    /// As an earlier process has saved it. Where others lifted the cordon and made it anew while no process ran, it is too
    /// early: that does no more than let a pod stay which would hold the drain for ever.
    pub(super) const fn restored(since: Option<Time>) -> Self {
        Self { since }
    }

    pub(super) const fn since(&self) -> Option<Time> {
        self.since
    }

    pub(super) fn note(&mut self, is_cordoned: bool, now: Time) {
        if is_cordoned {
            self.since.get_or_insert(now);
        } else {
            self.since = None;
        }
    }

    /// The pod that is seen now was made when every scheduler had seen the cordon. Both clocks must say so: ours, and
    /// the API server's, which may differ.
    pub(super) fn is_long_before(&self, pod: &Pod, now: Time) -> bool {
        self.since.is_some_and(|since| {
            let seen = since + SEEN_BY_SCHEDULERS;
            now >= seen && pod.created >= seen
        })
    }
}

impl Drain {
    /// Notes since when the node has been cordoned. A process that resumes knows nothing of it until it sees the node.
    pub(super) fn note_cordon(&mut self) {
        if let Some(node) = self.cluster.node() {
            self.newcomers.note_cordon(node.unschedulable, self.now);
        }
    }

    /// Why a newcomer stays although the planners want it gone or do not let it go; `None`: it does as they say.
    pub(super) fn reason_to_stay(&mut self, pod: &Pod, decision: &Decision) -> Option<Reason> {
        let despite_the_cordon = pod.cordon_toleration.is_some() || self.newcomers.came_late(&pod.id.uid);
        match decision.verdict {
            Verdict::Keep => None,
            Verdict::Refuse => (despite_the_cordon && decision.policy == HOST_POLICY)
                .then(|| arrived(pod, decision.reason.clone())),
            Verdict::Evict | Verdict::Delete | Verdict::AwaitCompletion => self
                .returns_too_often(pod, despite_the_cordon)
                .then(|| came_back(pod)),
        }
    }

    /// Counts a pod that came back after we had evicted one of its controller's. The next one counts after the next
    /// eviction: those that left together come back together, and one that another client deleted was not evicted.
    fn returns_too_often(&mut self, pod: &Pod, despite_the_cordon: bool) -> bool {
        let owner = owner_of(pod);
        let returns = if self.plan_state.take_departed(&owner) {
            self.checkpoint_state.count_return(owner)
        } else {
            self.checkpoint_state.returns().get(&owner).copied().unwrap_or(0)
        };
        let allowed = self.request.settings.returning_pod_evictions.max(1);
        let evictions = if despite_the_cordon {
            allowed
        } else {
            allowed.max(LEAST_RACES)
        };
        returns >= evictions
    }

    /// Pods that came to the cordoned node and stay, and why.
    pub(super) fn stayed(&self) -> Vec<(PodRef, Reason)> {
        let mut stayed: Vec<(PodRef, Reason)> = Vec::new();
        for (uid, pod_state) in self.plan_state.pods() {
            if let (PodState::Stays(reason), Some(pod)) = (pod_state, self.cluster.pod(uid)) {
                stayed.push((pod.id.clone(), reason.clone()));
            }
        }
        stayed.sort_by(|(one, _), (other, _)| one.cmp(other));
        stayed
    }
}

/// Why a pod stays that a former process has let stay; `None`: the plan keeps it anyway.
pub(super) fn stays_again(pod: &Pod, decision: &Decision) -> Option<Reason> {
    match decision.verdict {
        Verdict::Keep => None,
        Verdict::Refuse => Some(arrived(pod, decision.reason.clone())),
        Verdict::Evict | Verdict::Delete | Verdict::AwaitCompletion => Some(came_back(pod)),
    }
}

/// The reported plan says that it stays, and why.
pub(super) fn mark_as_staying(decision: &mut Decision, reason: &Reason) {
    decision.verdict = Verdict::Keep;
    decision.reason = format!("{reason}");
    decision.policy = String::from(HOST_POLICY);
}

fn arrived(pod: &Pod, message: String) -> Reason {
    Reason::ArrivedDuringDrain {
        message,
        toleration: toleration(pod),
    }
}

fn came_back(pod: &Pod) -> Reason {
    let controller = pod.controller.as_ref();
    Reason::KeepsComingBack {
        controller: controller.map_or_else(String::new, |owner| format!("{} {}", owner.kind, owner.name)),
        toleration: toleration(pod),
    }
}

fn toleration(pod: &Pod) -> String {
    pod.cordon_toleration.clone().unwrap_or_default()
}
