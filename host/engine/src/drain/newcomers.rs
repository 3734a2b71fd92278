//! Pods that appear after the plan was made: the planners decide on them as well.
//!
//! The verdicts on pods that are known already stand, unless they may not leave (`refused`). Pods that come to the cordoned node again and again are not
//! chased (`returning`).

use core::time::Duration;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;

use super::Drain;
use super::backoff::Backoff;
use super::eviction_target::EvictionTarget;
use super::plan_state::PodState;
use super::planning::Planned;
use super::refused;
use super::returning::{Cordoned, mark_as_staying};
use crate::{Decision, Notice, Plan, Pod, Reason, Time, Uid, Verdict};

/// Newcomers are planned together once none has come for this long.
const QUIET: Duration = Duration::from_secs(1);
/// A stream of them does not hold the first one up for longer.
const LONGEST: Duration = Duration::from_secs(5);

/// Pods that no plan names.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    /// Those that were reported, and whether the cordon was there long before they came.
    reported: BTreeMap<Uid, bool>,
    cordoned: Cordoned,
    first: Option<Time>,
    last: Time,
    /// When planners that failed are asked again.
    retry_at: Time,
    tries: u32,
    /// The planner that failed, and why, until the planners have answered.
    trouble: Option<(String, String)>,
}

impl Newcomers {
    /// When they will be planned, as long as the planners do not fail.
    fn due(&self) -> Option<Time> {
        let first = self.first?;
        Some((self.last + QUIET).min(first + LONGEST))
    }

    /// The pod came after the plan.
    pub(super) fn contains(&self, uid: &Uid) -> bool {
        self.reported.contains_key(uid)
    }

    /// The pod is gone.
    pub(super) fn forget(&mut self, uid: &Uid) {
        self.reported.remove(uid);
    }

    /// A planner failed. Returns when it is asked again: after a wait that grows, and the first time after `wait`, if that is
    /// given.
    pub(super) fn retry(
        &mut self,
        now: Time,
        wait: Option<Duration>,
        trouble: (String, String),
        seed: &str,
    ) -> Time {
        self.retry_at = match wait {
            Some(wait) => now + Backoff::beginning_with(wait).wait(self.tries),
            None => Backoff::REPLAN.after(now, self.tries, seed),
        };
        self.tries = self.tries.saturating_add(1);
        self.trouble = Some(trouble);
        self.retry_at
    }

    pub(super) const fn retry_at(&self) -> Time {
        self.retry_at
    }

    /// The node is seen.
    pub(super) fn note_cordon(&mut self, is_cordoned: bool, now: Time) {
        self.cordoned.note(is_cordoned, now);
    }

    /// Since when the node has been cordoned.
    pub(super) const fn cordoned_since(&self) -> Option<Time> {
        self.cordoned.since()
    }

    /// Since when an earlier process had seen the node cordoned.
    pub(super) const fn restore_cordon(&mut self, since: Option<Time>) {
        self.cordoned = Cordoned::restored(since);
    }

    /// The planners answered.
    pub(super) fn planned(&mut self) {
        self.first = None;
        self.tries = 0;
        self.trouble = None;
    }

    /// It came when the cordon had been there for long.
    pub(super) fn came_late(&self, uid: &Uid) -> bool {
        self.reported.get(uid).copied().unwrap_or_default()
    }

    /// Why no plan names a pod.
    pub(super) fn reason(&self) -> Reason {
        match self.trouble.clone() {
            Some((policy, message)) => Reason::PlannerFailed { policy, message },
            None => Reason::NotPlanned,
        }
    }
}

impl Drain {
    /// When the planners are to be asked about newcomers, or about pods that might not leave and have changed.
    pub(super) fn plan_due(&self) -> Option<Time> {
        let due = [self.newcomers.due(), self.refused.due()].into_iter().flatten();
        Some(due.min()?.max(self.newcomers.retry_at()))
    }

    /// Finds pods that no plan names, or that have changed since they were refused, and has them planned once no more come.
    pub(super) fn plan_newcomers(&mut self) {
        // Once more after each plan: some may have come while the planners were working.
        loop {
            self.find_newcomers();
            self.refused.observe(self.cluster.pods(), self.now);
            let is_due = self.plan_due().is_some_and(|due| self.now >= due);
            if self.chain.is_none() && !is_due {
                return;
            }
            let Planned::Plan { pods, plan } = self.run_planners() else {
                return;
            };
            self.newcomers.planned();
            self.admit(&pods, &plan);
        }
    }

    fn find_newcomers(&mut self) {
        let mut waits = false;
        for pod in self.plan_state.unplanned(self.cluster.pods()) {
            waits = true;
            if !self.newcomers.reported.contains_key(&pod.id.uid) {
                let late = self.newcomers.cordoned.is_long_before(pod, self.now);
                self.newcomers.reported.insert(pod.id.uid.clone(), late);
                self.newcomers.last = self.now;
                self.outbox.notify(Notice::Newcomer { pod: pod.id.clone() });
            }
        }
        if waits {
            self.newcomers.first.get_or_insert(self.now);
        } else {
            self.newcomers.first = None;
        }
    }

    /// Takes the verdicts on newcomers, and on pods that have changed since they were refused, out of a plan for all pods.
    fn admit(&mut self, pods: &[Pod], plan: &Plan) {
        let mut changed = false;
        for pod in pods {
            let uid = &pod.id.uid;
            let is_open = self.plan_state.pod(uid).is_none() || self.refused.has_changed(pod);
            if !is_open || self.cluster.pod(uid).is_none() {
                continue;
            }
            if let Some(decision) = plan.decision(uid) {
                changed |= self.admit_one(pod, decision, plan);
            }
        }
        if changed {
            self.limit_waves(plan);
            self.outbox
                .notify(Notice::Planned(self.plan_state.plan().clone()));
        }
    }

    /// Returns whether the decision is a new one.
    fn admit_one(&mut self, pod: &Pod, decision: &Decision, plan: &Plan) -> bool {
        let uid = pod.id.uid.clone();
        let mut decision = decision.clone();
        let is_newcomer = self.newcomers.contains(&uid);
        let reason_to_stay = is_newcomer.then(|| self.reason_to_stay(pod, &decision)).flatten();
        if reason_to_stay.is_some() || decision.verdict != Verdict::Refuse {
            self.refused.forget(&uid);
        } else {
            self.refused.refuse(pod, self.now);
        }
        let pod_state = match (reason_to_stay, decision.verdict) {
            (Some(reason), _) => {
                mark_as_staying(&mut decision, &reason);
                self.checkpoint_state.count_stay(uid.clone());
                PodState::Stays(reason)
            }
            (None, Verdict::Keep) => PodState::Keeps,
            (None, Verdict::Refuse) => {
                let reason = refused::reason(&decision);
                if self.is_refused_for(&uid, &reason) {
                    return false;
                }
                PodState::Refused(reason)
            }
            (None, verdict) => {
                let mut target = EvictionTarget::new(pod, verdict);
                if let Some(wave) = self.join_wave(&uid, plan) {
                    target.join_wave(wave);
                }
                PodState::Leaves(Box::new(target))
            }
        };
        self.plan_state.admit(uid, pod_state, decision);
        true
    }

    /// The pod may not leave already, for this reason.
    fn is_refused_for(&self, uid: &Uid, reason: &Reason) -> bool {
        matches!(self.plan_state.pod(uid), Some(PodState::Refused(known)) if known == reason)
    }
}
