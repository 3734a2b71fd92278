//! Deployments whose budgets hold pods of the node are surged: their planner, their rollouts, and what a drain may ask.
//! `raising` has the other method. The pods of ReplicaSets with one label in one namespace count as those of one
//! Deployment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{
    Answer, CommandId, DeploymentRef, Drain, HookPhase, Notice, Phase, Plan, PlanAnswer, Pod, PodRef,
    PolicyInfo, Reason, Request, Subject, Surge, SurgeMethod, SurgePlan, SurgeSettings, SurgeStep, Task,
    Time, Uid, Verdict,
};

use crate::cluster::{Change, Cluster, NODE};
use crate::coverage::Coverage;
use crate::invariants::Invariants;
use crate::raising::RaisedTruth;
use crate::rng::Rng;
use crate::scenario::Mood;
use crate::server::Done;
use crate::timers::Chore;
use crate::violation::{Checked, broken};
use crate::world::World;

/// The host's planner, behind all others.
pub(crate) const PLANNER: &str = "pre-flight";

/// Whether drains of this world surge Deployments, and how.
pub(crate) fn settings(rng: &mut Rng, mood: Mood) -> Option<SurgeSettings> {
    let surges = mood != Mood::Calm && rng.chance(400);
    surges.then(|| SurgeSettings {
        namespaces: BTreeSet::new(),
        timeout: Duration::from_millis(rng.between(10_000, 300_000)),
        method: if rng.chance(500) {
            SurgeMethod::Scale
        } else {
            SurgeMethod::Restart
        },
    })
}

pub(crate) fn planner() -> PolicyInfo {
    PolicyInfo {
        name: String::from(PLANNER),
        planner: true,
        ..PolicyInfo::default()
    }
}

/// The rollouts of a world.
#[derive(Debug)]
pub(crate) struct Rollouts {
    pub(crate) method: SurgeMethod,
    pub(crate) rng: Rng,
    pub(crate) mood: Mood,
    /// The Deployments that were raised.
    pub(crate) raised: BTreeMap<Uid, RaisedTruth>,
    /// A drain of another node was taken for ours.
    pub(crate) is_mistaken: bool,
    /// When drains of other nodes come.
    pub(crate) crowd: Vec<(u64, Chore)>,
    /// The Deployments that were restarted, and for which drain.
    restarted: BTreeMap<Uid, BTreeSet<String>>,
}

impl Rollouts {
    pub(crate) const fn new(method: SurgeMethod, rng: Rng, mood: Mood, crowd: Vec<(u64, Chore)>) -> Self {
        Self {
            method,
            rng,
            mood,
            raised: BTreeMap::new(),
            is_mistaken: false,
            crowd,
            restarted: BTreeMap::new(),
        }
    }

    /// When the replacements become ready; `None`: never.
    pub(crate) fn ready_after(&mut self) -> Option<u64> {
        let stuck = self.mood == Mood::Wild && self.rng.chance(150);
        (!stuck).then(|| self.rng.span(60_000, 600_000))
    }
}

/// The Deployment of a pod.
pub(crate) fn deployment(pod: &Pod) -> Option<DeploymentRef> {
    let controller = pod
        .controller
        .as_ref()
        .filter(|owner| owner.kind == "ReplicaSet")?;
    let app = pod.labels.get("app")?;
    let namespace = pod.id.namespace.clone();
    Some(DeploymentRef {
        uid: Uid::new(format!("{}-of-{namespace}-{app}", controller.kind)),
        name: app.clone(),
        namespace,
    })
}

impl World {
    /// Adds the surges to a draft, as the host's pre-flight arithmetic would. Where a drain of another node has the
    /// Deployment, the budget may look open.
    pub(crate) fn plan_surges(&self, draft: &Plan) -> PlanAnswer {
        let mut plan = draft.clone();
        plan.surge = self.choose_surges(draft);
        let looks_closed = |surge: &Surge| {
            let raised = self.cluster.rollouts.as_ref().map(|rollouts| &rollouts.raised);
            let truth = raised.and_then(|raised| raised.get(&surge.deployment.uid));
            truth.is_none_or(|truth| !truth.stands || !truth.of_other)
        };
        plan.surge.surges.retain(looks_closed);
        PlanAnswer::Plan(plan)
    }

    /// The Deployments whose pods on the node budgets hold.
    pub(crate) fn choose_surges(&self, draft: &Plan) -> SurgePlan {
        let method = self.cluster.rollouts.as_ref().map(|rollouts| rollouts.method);
        let method = method.unwrap_or_default();
        let mut chosen = SurgePlan {
            method,
            ..SurgePlan::default()
        };
        let mut pods: BTreeMap<DeploymentRef, Vec<&Pod>> = BTreeMap::new();
        for pod in self.cluster.on_node().map(|truth| &truth.pod) {
            if let Some(deployment) = deployment(pod).filter(|_| pod.deletion.is_none() && !pod.is_finished())
            {
                pods.entry(deployment).or_default().push(pod);
            }
        }
        for (deployment, pods) in pods {
            let budgets = self.cluster.budgets.values();
            let mut holding = budgets.filter(|truth| pods.iter().any(|pod| truth.budget.selects(pod)));
            let Some(truth) = holding.next() else { continue };
            let pods: Vec<&Pod> = match method {
                SurgeMethod::Restart if leave_together(draft, &pods) => pods,
                SurgeMethod::Restart => continue,
                SurgeMethod::Scale => pods.into_iter().filter(|pod| evicts(draft, pod)).collect(),
            };
            if !pods.is_empty() {
                chosen.surges.push(Surge {
                    deployment,
                    replicas: None,
                    budget: truth.budget.name.clone(),
                    pods: pods.iter().map(|pod| pod.id.clone()).collect(),
                });
            }
        }
        chosen
    }

    /// The API server restarts a Deployment, once for a drain.
    pub(crate) fn restart_deployment(&mut self, deployment: &DeploymentRef, drain: &str) -> Done {
        self.write_deployment(deployment, |cluster, now, uid| cluster.restart(now, uid, drain))
    }
}

impl Cluster {
    fn restart(&mut self, now: u64, uid: &Uid, drain: &str) -> Answer {
        let Some(rollouts) = &mut self.rollouts else {
            return Answer::Rejected {
                message: String::from("scripted"),
            };
        };
        let raised = rollouts.raised.get(uid);
        if raised.is_some_and(|truth| truth.stands && truth.of_other) {
            return Answer::Busy {
                message: String::from("scripted"),
            };
        }
        let drains = rollouts.restarted.entry(uid.clone()).or_default();
        if drains.insert(drain.to_owned())
            && let Some(after) = rollouts.ready_after()
        {
            let chore = Chore::RolledOut(uid.clone());
            self.changes.push(Change::Later(now + after, chore));
        }
        Answer::Written {
            version: String::new(),
        }
    }

    /// The replacements are ready: the ReplicaSet's controller deletes the old pods.
    pub(crate) fn rolled_out(&mut self, now: u64, uid: &Uid) {
        let of_deployment = |pod: &Pod| deployment(pod).is_some_and(|it| it.uid == *uid) && pod.node == NODE;
        let old = self.pods.values().filter(|truth| of_deployment(&truth.pod));
        let old: Vec<Pod> = old.map(|truth| truth.pod.clone()).collect();
        for pod in old {
            for truth in self
                .budgets
                .values_mut()
                .filter(|truth| truth.budget.selects(&pod))
            {
                truth.elsewhere += 1;
            }
            self.delete(now, &pod.id.uid, None);
        }
    }
}

/// The plan evicts all of them, in one wave that lets them go at once.
fn leave_together(plan: &Plan, pods: &[&Pod]) -> bool {
    let is_in_one = plan.waves.iter().any(|wave| {
        let room = wave
            .max_parallel
            .is_none_or(|most| pods.len() as u64 <= u64::from(most));
        room && pods.iter().all(|pod| wave.pods.contains(&pod.id.uid))
    });
    pods.iter().all(|pod| evicts(plan, pod)) && is_in_one
}

fn evicts(plan: &Plan, pod: &Pod) -> bool {
    let decision = plan.decision(&pod.id.uid);
    decision.is_some_and(|decision| decision.verdict == Verdict::Evict)
}

/// The surges that a process has asked for.
#[derive(Debug, Default)]
pub(crate) struct SurgeRecord {
    pub(crate) planned: BTreeMap<Uid, Vec<PodRef>>,
    /// Deployments of which no surge may be asked for any more.
    pub(crate) over: BTreeSet<Uid>,
    /// Deployments of which a surge was given up.
    pub(crate) given_up: BTreeSet<Uid>,
    /// Deployments that were reported as left raised, by any process.
    pub(crate) left: BTreeSet<Uid>,
    /// The pods of Deployments that an earlier process may have raised.
    pub(crate) restored: BTreeMap<Uid, BTreeSet<Uid>>,
    /// Deployments that this process has asked to be raised, and that was not answered.
    pub(crate) open: BTreeSet<Uid>,
    /// Deployments that this process has tried to take back.
    pub(crate) tried: BTreeSet<Uid>,
    /// When another drain last had a Deployment that was asked for.
    pub(crate) turns: BTreeMap<Uid, Time>,
    /// When the surges were last chosen, or are to be.
    pub(crate) chosen: u64,
    /// The drain has an outcome.
    pub(crate) ends: bool,
    /// Flow control held a pod at the last look.
    pub(crate) throttled: bool,
}

impl SurgeRecord {
    pub(crate) fn planned(&mut self, plan: &Plan) {
        let surges = plan.surge.surges.iter();
        let pods = surges.map(|surge| (surge.deployment.uid.clone(), surge.pods.clone()));
        self.planned = pods.collect();
    }
}

impl Invariants {
    /// A restart replaces pods: what holds for an eviction holds for each of them.
    pub(crate) fn surge(
        &mut self,
        now: u64,
        deployment: &DeploymentRef,
        request: &Request,
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        let is_same =
            |task: &Task| matches!(task, Task::Surge { deployment: other, .. } if other == deployment);
        if outstanding.values().any(is_same) || self.surges.over.contains(&deployment.uid) {
            return broken(8, format!("{deployment} is restarted twice"));
        }
        let Some(pods) = self.surges.planned.get(&deployment.uid).cloned() else {
            return broken(
                1,
                format!("{deployment} is restarted, which the plan does not say"),
            );
        };
        self.all_done(request, HookPhase::BeforeDrain, &Subject::Node)?;
        let mut replaces = false;
        for PodRef { uid, .. } in &pods {
            self.removal_is_timely(now, uid)?;
            let is_there = self.knowledge.there.contains_key(uid);
            if !is_there || self.knowledge.deleting.contains(uid) {
                continue;
            }
            let verdict = self.plans.verdicts.get(uid);
            if verdict != Some(&Verdict::Evict) {
                return broken(
                    1,
                    format!("{deployment} is restarted, whose pod {uid} is {verdict:?}"),
                );
            }
            self.all_done(request, HookPhase::BeforeEvict, &Subject::Pod(uid.clone()))?;
            self.plans.ask(uid, &self.knowledge.there)?;
            replaces = true;
        }
        match replaces {
            true => Ok(()),
            false => broken(
                1,
                format!("{deployment} is restarted, which has no pod here any more"),
            ),
        }
    }

    /// After a surge was answered or given up, no other one follows.
    pub(crate) fn surge_notice(&mut self, notice: &Notice, request: &Request) -> Checked {
        let Notice::Surge { deployment, step } = notice else {
            return Ok(());
        };
        let uid = deployment.uid.clone();
        match step {
            SurgeStep::LeftRaised { .. } => {
                if !self.surges.tried.contains(&uid) && !self.surges.open.contains(&uid) {
                    return broken(8, format!("{deployment} is left raised without a try"));
                }
                self.surges.left.insert(uid.clone());
            }
            SurgeStep::GaveUp { .. } => {
                self.gives_no_turn_up(&uid, request)?;
                self.surges.given_up.insert(uid.clone());
            }
            _ => {}
        }
        self.surges.over.insert(uid);
        if let SurgeStep::GaveUp { .. } = step {
            let pods = self.surges.planned.get(&deployment.uid);
            for pod in pods.into_iter().flatten() {
                self.plans.refused(&pod.uid);
            }
        }
        Ok(())
    }
}

/// A pod that its budget holds waits no longer until surges are chosen once more.
const CHOSEN_WITHIN: u64 = 200_000;

impl Invariants {
    /// A surge was answered.
    pub(crate) fn surge_answered(&mut self, deployment: &Uid, answer: &Answer, coverage: &mut Coverage) {
        self.surges.open.remove(deployment);
        match answer {
            Answer::Busy { .. } => {
                coverage.count("surge", "waits for its turn");
                let now = self.process_now;
                self.surges.turns.insert(deployment.clone(), now);
                // Nothing was written: until its turn comes, its pods hold no place of their wave.
                let pods = self.surges.planned.get(deployment).into_iter().flatten();
                for pod in pods.filter(|pod| !self.knowledge.deleting.contains(&pod.uid)) {
                    self.plans.refused(&pod.uid);
                }
            }
            Answer::Rejected { .. } | Answer::NodeGone | Answer::Forbidden { .. } => {
                self.surges.turns.remove(deployment);
            }
            _ => {}
        }
    }

    /// Invariant 8: while another drain has a Deployment, no time passes for its surge.
    fn gives_no_turn_up(&self, deployment: &Uid, request: &Request) -> Checked {
        let timeout = request.settings.surge.as_ref().map(|surge| surge.timeout);
        let turn = self.surges.turns.get(deployment).zip(timeout);
        match turn.filter(|(at, timeout)| self.process_now < **at + *timeout) {
            Some(_) => broken(8, format!("gives up {deployment}, which another drain has had")),
            None => Ok(()),
        }
    }

    /// Invariant 8: a budget that holds a pod is looked at again and again, because it may have closed after the plan.
    pub(crate) fn surges_are_chosen(
        &mut self,
        now: u64,
        drain: &Drain,
        waiting: &[(PodRef, Reason)],
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        if drain.request().settings.surge.is_none() {
            return Ok(());
        }
        let chooses = |task: &Task| matches!(task, Task::ChooseSurges { .. });
        let is_held = |(pod, reason): &(PodRef, Reason)| {
            let mut planned = self.surges.planned.values().flatten();
            matches!(reason, Reason::BudgetExhausted { .. }) && !planned.any(|it| it.uid == pod.uid)
        };
        // While the API server asks for less, no budget is tried.
        let is_throttled = |(_, reason): &(PodRef, Reason)| matches!(reason, Reason::Throttled { .. });
        let throttled = waiting.iter().any(is_throttled);
        // Also until just now: nothing is looked at in between.
        let was_throttled = std::mem::replace(&mut self.surges.throttled, throttled);
        let stands = drain.outcome().is_some() || drain.phase() != Phase::Evicting;
        if stands
            || throttled
            || was_throttled
            || outstanding.values().any(chooses)
            || !waiting.iter().any(is_held)
        {
            self.surges.chosen = now;
        }
        match now > self.surges.chosen + CHOSEN_WITHIN {
            true => broken(8, "a budget holds a pod, and no surge is chosen"),
            false => Ok(()),
        }
    }
}

impl Coverage {
    /// Counts notices about surges.
    pub(crate) fn count_surges(&mut self, notice: &Notice) {
        if let Notice::Surge { step, .. } = notice {
            self.count("surge", step.name());
        }
    }
}
