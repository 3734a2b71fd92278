//! Pods that appear after the plan was made: they go through the planners as well, and leave or stay by their verdict.
//!
//! The verdicts on pods that are known already stand. A controller that puts pods back again and again is not chased.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use super::Drain;
use super::backoff::Backoff;
use super::planning::Planned;
use super::roster::{Standing, Target};
use crate::{Decision, Duration, Notice, Plan, Pod, Reason, Time, Uid, Verdict};

/// Newcomers are planned together once none has come for this long.
const QUIET: Duration = Duration::from_secs(1);
/// A stream of them does not hold the first one up for longer.
const LONGEST: Duration = Duration::from_secs(5);

/// Pods that no plan names.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    told: BTreeSet<Uid>,
    first: Option<Time>,
    last: Time,
    /// When planners that failed are asked again.
    pub(super) retry_at: Time,
    tries: u32,
    /// The planner that failed, and why, until the planners have answered.
    trouble: Option<(String, String)>,
}

impl Newcomers {
    /// When they will be planned.
    pub(super) fn due(&self) -> Option<Time> {
        let first = self.first?;
        Some((self.last + QUIET).min(first + LONGEST).max(self.retry_at))
    }

    pub(super) fn forget_all_but(&mut self, there: &BTreeMap<Uid, Pod>) {
        self.told.retain(|uid| there.contains_key(uid));
    }

    /// A planner failed; when it is asked again: after so long, or with a wait that grows.
    pub(super) fn retry(
        &mut self,
        now: Time,
        wait: Option<Duration>,
        trouble: (String, String),
        seed: &str,
    ) -> Time {
        let growing = Backoff::REPLAN.after(now, self.tries, seed);
        self.retry_at = wait.map_or(growing, |wait| now + wait);
        self.tries = self.tries.saturating_add(1);
        self.trouble = Some(trouble);
        self.retry_at
    }

    /// The planners answered.
    pub(super) fn planned(&mut self) {
        self.first = None;
        self.tries = 0;
        self.trouble = None;
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
    /// Notices pods that no plan names, and has them planned once they have stopped coming.
    pub(super) fn plan_newcomers(&mut self) {
        // Once more after each plan: some may have come while the planners were thinking.
        loop {
            self.notice_newcomers();
            let is_due = self.newcomers.due().is_some_and(|due| self.now >= due);
            if self.chain.is_none() && !is_due {
                return;
            }
            let Planned::Plan { pods, plan } = self.think() else {
                return;
            };
            self.newcomers.planned();
            self.admit(&pods, &plan);
        }
    }

    fn notice_newcomers(&mut self) {
        let known = &self.roster.standings;
        let mut waits = false;
        for pod in self.world.pods().values() {
            if known.contains_key(&pod.id.uid) {
                continue;
            }
            waits = true;
            if self.newcomers.told.insert(pod.id.uid.clone()) {
                self.newcomers.last = self.now;
                self.outbox.tell(Notice::Newcomer { pod: pod.id.clone() });
            }
        }
        if waits {
            self.newcomers.first.get_or_insert(self.now);
        } else {
            self.newcomers.first = None;
        }
    }

    /// Takes the verdicts on newcomers out of a plan for all pods.
    fn admit(&mut self, pods: &[Pod], plan: &Plan) {
        let mut changed = false;
        for pod in pods {
            let uid = &pod.id.uid;
            if self.roster.standings.contains_key(uid) || self.world.pod(uid).is_none() {
                continue;
            }
            if let Some(decision) = plan.decision(uid) {
                self.admit_one(pod, decision, plan);
                changed = true;
            }
        }
        if changed {
            self.outbox.tell(Notice::Planned(self.roster.plan.clone()));
        }
    }

    fn admit_one(&mut self, pod: &Pod, decision: &Decision, plan: &Plan) {
        let uid = pod.id.uid.clone();
        let mut standing = match decision.verdict {
            Verdict::Keep => Standing::Keeps,
            Verdict::Refuse => Standing::Refused,
            verdict => Standing::Leaves(Box::new(self.returned(pod, verdict))),
        };
        if let Standing::Leaves(target) = &mut standing
            && !target.keeps_coming_back
            && let Some(wave) = plan.waves.iter().find(|wave| wave.pods.contains(&uid))
        {
            let own_pod = self.request.settings.own_pod.as_ref().map(|own| &own.uid);
            target.wave = Some(self.roster.place(uid.clone(), wave, own_pod));
        }
        self.roster.plan.decisions.push(decision.clone());
        self.roster.plan.waves = self.roster.waves.iter().map(|run| run.wave.clone()).collect();
        self.roster.standings.insert(uid, standing);
    }

    fn returned(&mut self, pod: &Pod, verdict: Verdict) -> Target {
        let mut target = Target::new(pod, verdict);
        if self.roster.departed.contains(&target.owner) || self.memory.returns.contains_key(&target.owner) {
            let count = self.memory.count_return(target.owner.clone());
            target.keeps_coming_back = count > self.request.settings.max_returns;
        }
        target
    }
}
