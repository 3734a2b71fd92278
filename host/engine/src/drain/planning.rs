//! The chain of planners: each gets the draft of the one before, and each answer must hold before the next is asked.

use core::time::Duration;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::eviction_target::EvictionTarget;
use super::outbox::Job;
use super::plan_state::PodState;
use super::refused;
use super::returning::{mark_as_staying, stays_again};
use super::steps::{LATEST, SOONEST_RETRY};
use super::surge::Surges;
use crate::filter::refuse_named;
use crate::outcome::REFUSED;
use crate::{
    Blocker, Intent, Notice, Outcome, Phase, Plan, PlanAnswer, Pod, PodRef, Surge, Task, Uid, Verdict,
};
use crate::{check, draft, signed};

/// Planners at work.
#[derive(Debug)]
pub(super) struct Chain {
    /// The pods the plan is for.
    pods: Vec<Pod>,
    draft: Plan,
    /// Planners that have not answered yet, the next one last.
    policies: Vec<String>,
    in_flight: bool,
}

/// A chain that has come to its end.
pub(super) enum Planned {
    /// A planner has not answered yet.
    NotYet,
    /// The plan holds.
    Plan { pods: Vec<Pod>, plan: Plan },
}

impl Drain {
    /// The pods that the planner under way decides on, as they were when the chain began; none while no planner works.
    /// They are what its draft is for: other sources may be older or newer.
    pub fn pods_to_plan(&self) -> &[Pod] {
        self.chain.as_ref().map_or(&[], |chain| &chain.pods)
    }

    /// How many chains of planners have begun: planners that were asked at the same number make one plan.
    pub const fn chains_begun(&self) -> u64 {
        self.chains_begun
    }

    /// Nothing has been changed, by this process or by a former one of this drain, and no plan has been agreed on.
    pub fn is_untouched(&self) -> bool {
        self.phase == Phase::Planning && !self.was_cordoned()
    }

    /// Plans the drain once the node, its pods and their budgets are known. Nothing has been changed before.
    pub(super) fn plan_first(&mut self) {
        if self.request.intent == Intent::Uncordon {
            self.begin_uncordon();
            return;
        }
        if !self.cluster.is_complete() || self.now < self.newcomers.retry_at() {
            return;
        }
        let Planned::Plan { pods, plan } = self.run_planners() else {
            return;
        };
        self.newcomers.planned();
        let pods: BTreeMap<&Uid, &Pod> = pods.iter().map(|pod| (&pod.id.uid, pod)).collect();
        let blockers = self.adopt(plan, &pods);
        if !blockers.is_empty() && !self.was_cordoned() {
            self.stop(Outcome::Blocked { pods: blockers });
            return;
        }
        self.outbox
            .notify(Notice::Planned(self.plan_state.plan().clone()));
        self.leave_planning();
    }

    /// Asks the next planner, or says what the chain has come to.
    pub(super) fn run_planners(&mut self) -> Planned {
        if self.chain.is_none() {
            let pods: Vec<Pod> = self.pods().cloned().collect();
            let draft = draft(&pods, &self.request.settings, self.now);
            self.chains_begun = self.chains_begun.saturating_add(1);
            let planners = self.request.policies.iter().filter(|policy| policy.planner);
            let policies = planners.map(|policy| policy.name.clone()).rev().collect();
            self.chain = Some(Chain {
                pods,
                draft,
                policies,
                in_flight: false,
            });
        }
        match &mut self.chain {
            Some(chain) if chain.in_flight => return Planned::NotYet,
            Some(chain) => {
                if let Some(policy) = chain.policies.last() {
                    chain.in_flight = true;
                    let task = Task::Plan {
                        policy: policy.clone(),
                        draft: chain.draft.clone(),
                    };
                    self.outbox.push(task, Job::Plan);
                    return Planned::NotYet;
                }
            }
            None => return Planned::NotYet,
        }
        match self.chain.take() {
            Some(Chain { pods, mut draft, .. }) => {
                let was_there =
                    |pod: &&Pod| !self.newcomers.contains(&pod.id.uid) && !self.came_meanwhile(pod);
                let were_there = pods.iter().filter(was_there);
                refuse_named(&mut draft, were_there, &self.request.settings.filters);
                Planned::Plan { pods, plan: draft }
            }
            None => Planned::NotYet,
        }
    }

    /// A planner answered.
    pub(super) fn plan_answered(&mut self, answer: PlanAnswer) {
        let Some(chain) = &mut self.chain else {
            return;
        };
        chain.in_flight = false;
        let Some(policy) = chain.policies.pop() else {
            return;
        };
        let (message, retry_after) = match answer {
            PlanAnswer::Plan(plan) => match check(&plan, &chain.pods, &self.request.settings) {
                Ok(()) => {
                    chain.draft = signed(plan, &chain.draft, &policy);
                    return;
                }
                Err(fault) => (
                    format!("its plan does not hold: {}", fault.describe(&chain.pods)),
                    None,
                ),
            },
            PlanAnswer::Refused { message } => (format!("{REFUSED}: {message}"), None),
            PlanAnswer::Failed { message, retry_after } => (message, retry_after),
        };
        self.planning_failed(policy, message, retry_after);
    }

    /// Before the cordon a planner that fails for good ends the drain. Later it must not: it is asked again, as is one
    /// that says when. The whole chain begins anew then: pods will have come and gone.
    fn planning_failed(&mut self, policy: String, message: String, retry_after: Option<Duration>) {
        self.chain = None;
        if retry_after.is_none() && self.phase == Phase::Planning && !self.was_cordoned() {
            self.stop(Outcome::PolicyFailed { policy, message });
            return;
        }
        let wait = retry_after.map(|wait| wait.clamp(SOONEST_RETRY, LATEST));
        let trouble = (policy.clone(), message.clone());
        let again = self.newcomers.retry(self.now, wait, trouble, &self.request.id);
        self.outbox.notify(Notice::PlannerWaiting {
            policy,
            message,
            again,
        });
    }

    /// An earlier process had cordoned the node.
    pub(super) fn was_cordoned(&self) -> bool {
        self.resumed.is_some_and(Phase::is_past_cordoning)
    }

    /// Makes the plan the agreed one, without the pods that have gone meanwhile, and without those that have come between
    /// two processes: these are decided on as newcomers, so that their waves' hooks run for them. Returns those that may
    /// not leave.
    fn adopt(&mut self, mut plan: Plan, pods: &BTreeMap<&Uid, &Pod>) -> Vec<Blocker> {
        let cluster = &self.cluster;
        let is_meant = |pod: &Pod| !self.came_meanwhile(pod);
        plan.decisions
            .retain(|decision| cluster.pod(&decision.pod).is_some_and(is_meant));
        let mut blockers = Vec::new();
        for decision in &mut plan.decisions {
            let Some(pod) = pods.get(&decision.pod) else {
                continue;
            };
            if self.checkpoint_state.stays().contains(&decision.pod)
                && let Some(reason) = stays_again(pod, decision)
            {
                mark_as_staying(decision, &reason);
                let pod_state = PodState::Stays(reason);
                self.plan_state.set_pod(decision.pod.clone(), pod_state);
                continue;
            }
            let pod_state = match decision.verdict {
                Verdict::Keep => PodState::Keeps,
                Verdict::Refuse => {
                    blockers.push(Blocker {
                        pod: pod.id.clone(),
                        reason: decision.reason.clone(),
                        policy: decision.policy.clone(),
                    });
                    self.refused.refuse(pod, self.now);
                    PodState::Refused(refused::reason(decision))
                }
                verdict => PodState::Leaves(Box::new(EvictionTarget::new(pod, verdict))),
            };
            self.plan_state.set_pod(decision.pod.clone(), pod_state);
        }
        let plan_state = &self.plan_state;
        for wave in &mut plan.waves {
            wave.pods.retain(|uid| plan_state.target(uid).is_some());
        }
        let is_named = |pod: &PodRef| plan_state.pod(&pod.uid).is_some() || cluster.pod(&pod.uid).is_none();
        for surge in &mut plan.surge.surges {
            surge.pods.retain(is_named);
        }
        plan.surge.surges.retain(|surge| !surge.pods.is_empty());
        let leaves = |pod: &PodRef| plan_state.target(&pod.uid).is_some() || cluster.pod(&pod.uid).is_none();
        plan.surge.surges.retain(|surge| surge.pods.iter().all(leaves));
        let raised_before = |surge: &Surge| self.raises.is_over(&surge.deployment.uid);
        plan.surge.surges.retain(|surge| !raised_before(surge));
        self.surges = Surges::new(&plan.surge);
        self.extend_raises(&plan.surge.surges);
        self.plan_state.set_plan(plan);
        self.resume_waves();
        self.forget_hooks_of_others();
        blockers
    }

    /// To where the drain begins, or to where an earlier process left it.
    fn leave_planning(&mut self) {
        self.count_departed();
        match self.resumed {
            None | Some(Phase::Planning | Phase::Preparing | Phase::Cordoning | Phase::Uncordoning) => {
                let begun = self.hooks.any_open();
                let skip = self.cluster.is_cordoned() && !begun && !self.is_cordoned_ahead();
                self.enter(if skip { Phase::Cordoning } else { Phase::Preparing });
            }
            // Hooks that have finished are not called again.
            Some(_) => self.enter(Phase::Holding),
        }
        if self.phase.is_past_cordoning() && !self.cluster.is_cordoned() {
            self.uncordoned_by_others();
        }
    }
}
