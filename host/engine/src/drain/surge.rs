//! Surges the Deployments that the plan names, each once: when its pods on the node may be evicted and their budget has no
//! room; for a restart also their hooks have finished. From then on the pods are evicted as usual, or the rollout removes
//! them. `choosing` adds the Deployments whose budgets close later.
//!
//! Drains of other nodes may want the same Deployment: one has it at a time, and waiting for the turn costs no time.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::Drain;
use super::backoff::Backoff;
use super::budget_tracker::BudgetKey;
use super::choosing::Choice;
use super::eviction_target::EvictionTarget;
use super::outbox::Job;
use super::replies::{SurgeReply, WriteReply};
use crate::{
    DeploymentRef, HookPhase, HumanDuration, Notice, Pod, PodRef, Reason, Subject, Surge, SurgeMethod,
    SurgePlan, SurgeSettings, SurgeStep, Task, Time, Uid, surge_mark,
};

/// The surges of the agreed plan.
#[derive(Debug, Default)]
pub(super) struct Surges {
    method: SurgeMethod,
    runs: BTreeMap<Uid, SurgeRun>,
    pub(super) choice: Choice,
}

/// How far a surge has come.
#[derive(Debug)]
struct SurgeRun {
    surge: Surge,
    stage: Stage,
    /// Since when its time counts; `None`: it was not asked for, or another drain or a rollout has the Deployment.
    since: Option<Time>,
    /// Since when the API server has been refusing it with 401 or 403; only time between two refusals in a row counts.
    refused_since: Option<Time>,
    retry_at: Time,
    tries: u32,
    /// Why the last request failed.
    problem: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The surge was not asked for, or is to be asked for again.
    Waiting,
    /// The surge was asked for.
    Asked,
    /// The rollout has begun, or the replicas are raised.
    Begun,
    /// Its pods are gone.
    Over,
    /// Nothing more is done.
    GivenUp,
}

impl SurgeRun {
    fn new(surge: &Surge) -> Self {
        Self {
            surge: surge.clone(),
            stage: Stage::Waiting,
            since: None,
            refused_since: None,
            retry_at: Time::default(),
            tries: 0,
            problem: None,
        }
    }

    const fn is_under_way(&self) -> bool {
        self.since.is_some() && !matches!(self.stage, Stage::Over | Stage::GivenUp)
    }

    /// It was asked for, and another drain or a rollout has the Deployment.
    const fn waits_for_turn(&self) -> bool {
        self.since.is_none() && self.tries > 0 && matches!(self.stage, Stage::Waiting)
    }

    /// How long the API server has been refusing it.
    fn count_refusal(&mut self, now: Time) -> Duration {
        now.since(*self.refused_since.get_or_insert(now))
    }
}

impl Surges {
    pub(super) fn new(plan: &SurgePlan) -> Self {
        let runs = plan.surges.iter();
        let runs = runs.map(|surge| (surge.deployment.uid.clone(), SurgeRun::new(surge)));
        Self {
            method: plan.method,
            runs: runs.collect(),
            choice: Choice::default(),
        }
    }

    /// Adds a surge that was chosen later. A Deployment is surged once.
    pub(super) fn add(&mut self, method: SurgeMethod, surge: &Surge) -> bool {
        let is_new = !self.runs.contains_key(&surge.deployment.uid);
        if is_new {
            self.method = method;
            let uid = surge.deployment.uid.clone();
            self.runs.insert(uid, SurgeRun::new(surge));
        }
        is_new
    }

    /// A raise has found its place once its budget has room. If others use the room, its time begins anew: they need
    /// replacements of their own. So it counts from the last moment at which there was room, looked at or not.
    pub(super) fn renew_raises(&mut self, now: Time, has_room: impl Fn(&BudgetKey) -> bool) {
        let is_scale = self.method == SurgeMethod::Scale;
        let begun = self.runs.values_mut();
        for run in begun.filter(|run| is_scale && run.stage == Stage::Begun) {
            let key = BudgetKey::new(&run.surge.deployment.namespace, &run.surge.budget);
            if has_room(&key) {
                run.since = Some(now);
            }
        }
    }

    /// A surge, whatever became of it, was for this pod.
    pub(super) fn covers(&self, pod: &Uid) -> bool {
        self.of_pod(pod).is_some()
    }

    /// How far the surge of this Deployment has come; `None`: it is not planned.
    pub(super) fn stage(&self, deployment: &Uid) -> Option<Stage> {
        self.runs.get(deployment).map(|run| run.stage)
    }

    /// The surge by which this pod's budget gets room from one replica more, if it is to be asked for now.
    pub(super) fn to_raise(&self, pod: &Uid, now: Time) -> Option<Surge> {
        let run = self.of_pod(pod).filter(|_| self.method == SurgeMethod::Scale)?;
        let is_due = run.stage == Stage::Waiting && now >= run.retry_at;
        is_due.then(|| run.surge.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn of_pod(&self, pod: &Uid) -> Option<&SurgeRun> {
        let is_of = |run: &&SurgeRun| run.surge.pods.iter().any(|surged| surged.uid == *pod);
        self.runs.values().find(is_of)
    }
}

impl Drain {
    /// Whether a restart must replace the pod before its eviction, and has not begun.
    pub(super) fn surge_comes_first(&mut self, pod: &Pod) -> bool {
        let run = self.surges.of_pod(&pod.id.uid);
        let run = run.filter(|_| self.surges.method == SurgeMethod::Restart);
        let is_to_begin = run.is_some_and(|run| matches!(run.stage, Stage::Waiting | Stage::Asked));
        is_to_begin && self.budget_hold(pod).is_some()
    }

    /// The pod's rollout is under way.
    pub(super) fn is_restarting(&self, pod: &Uid) -> bool {
        let is_restart = self.surges.method == SurgeMethod::Restart;
        is_restart && self.surges.of_pod(pod).is_some_and(SurgeRun::is_under_way)
    }

    /// Any is planned, or was, or is to be taken back.
    pub(super) fn has_surges(&self) -> bool {
        !self.surges.is_empty() || !self.raises.is_empty()
    }

    /// Why a pod with a surge under way is still there while its budget holds it.
    pub(super) fn surge_reason(&self, pod: &Uid) -> Option<Reason> {
        let run = self.surges.of_pod(pod);
        let run = run.filter(|run| run.is_under_way() || run.waits_for_turn());
        let reason = run.map(|run| surging(&run.surge.deployment, self.surges.method));
        reason.or_else(|| self.raised_for(pod))
    }

    /// Restarts the Deployment of a pod whose turn has come, or says why not now.
    pub(super) fn surge(&mut self, pod: &Uid) -> Reason {
        let Some(run) = self.surges.of_pod(pod) else {
            return Reason::ParallelLimit;
        };
        let deployment = run.surge.deployment.clone();
        let is_due = run.stage == Stage::Waiting && self.now >= run.retry_at;
        if is_due {
            let pods = self.pods_to_replace(&run.surge.pods);
            if let Some(reason) = self.surge_hold(&pods) {
                return reason;
            }
            self.ask_for_surge(&deployment);
        }
        surging(&deployment, SurgeMethod::Restart)
    }

    /// Asks for the surges of pods that their budgets refused: they are tried again more seldom.
    pub(super) fn retry_surges(&mut self) {
        let due = self.surges.runs.values().filter(|run| {
            run.stage == Stage::Waiting
                && self.now >= run.retry_at
                && !self.outbox.writes_deployment(&run.surge.deployment.uid)
        });
        let is_held = |uid: &Uid| {
            let target = self.plan_state.target(uid);
            target.is_some_and(EvictionTarget::is_held_by_budget) && self.is_in_turn(uid)
        };
        let held = due.filter_map(|run| run.surge.pods.iter().map(|pod| &pod.uid).find(|uid| is_held(uid)));
        let held: Vec<Uid> = held.cloned().collect();
        for uid in held {
            match self.surges.method {
                SurgeMethod::Scale => self.raise(&uid),
                SurgeMethod::Restart => drop(self.surge(&uid)),
            }
        }
    }

    pub(super) fn ask_for_surge(&mut self, deployment: &DeploymentRef) {
        let now = self.now;
        let method = self.surges.method;
        let drain = self.surge_mark();
        let Some(run) = self.surges.runs.get_mut(&deployment.uid) else {
            return;
        };
        run.stage = Stage::Asked;
        run.since.get_or_insert(now);
        let task = Task::Surge {
            deployment: deployment.clone(),
            drain,
            method,
        };
        self.outbox.push(task, Job::Surge(deployment.uid.clone()));
    }

    /// What names this drain on Deployments.
    pub(super) fn surge_mark(&self) -> String {
        let uid = self.cluster.node_uid();
        let mark = uid.map(|uid| surge_mark(&self.request.node, uid, &self.request.id));
        mark.unwrap_or_default()
    }

    /// Those of these pods that are there and not terminating.
    fn pods_to_replace(&self, pods: &[PodRef]) -> Vec<Uid> {
        let is_there = |pod: &&PodRef| {
            let known = self.cluster.pod(&pod.uid);
            known.is_some_and(|known| known.deletion.is_none()) && self.plan_state.target(&pod.uid).is_some()
        };
        pods.iter().filter(is_there).map(|pod| pod.uid.clone()).collect()
    }

    /// Why the rollout may not replace these pods now: it removes them all at once, so each must be free to go.
    fn surge_hold(&self, pods: &[Uid]) -> Option<Reason> {
        let hook = |uid: &Uid| self.hook_reason(HookPhase::BeforeEvict, &Subject::Pod(uid.clone()));
        if let Some(reason) = pods.iter().find_map(hook) {
            return Some(reason);
        }
        let may_go = pods.iter().all(|uid| self.is_in_turn(uid)) && self.has_room_for(pods);
        (!may_go).then_some(Reason::ParallelLimit)
    }

    /// Their wave lets all of them leave at once.
    fn has_room_for(&self, pods: &[Uid]) -> bool {
        let Some(wave) = pods.first().and_then(|uid| self.plan_state.wave_of(uid)) else {
            return true;
        };
        let Some(limit) = wave.wave().max_parallel else {
            return true;
        };
        let others = wave.wave().pods.iter().filter(|uid| !pods.contains(uid));
        let leaving = others.filter(|uid| self.is_leaving(uid)).count();
        leaving + pods.len() <= usize::try_from(limit).unwrap_or(usize::MAX)
    }

    /// Takes the API server's answer to a surge.
    pub(super) fn surge_answered(&mut self, deployment: &Uid, reply: SurgeReply) {
        let reply = match reply {
            SurgeReply::Write(reply) => reply,
            SurgeReply::Busy { message } => return self.await_turn(deployment, message),
        };
        let forbidden_timeout = self.request.settings.forbidden_timeout;
        let now = self.now;
        self.raises.answered(deployment, &reply);
        let Some(run) = self.asked_surge(deployment) else {
            return;
        };
        let message = match reply {
            WriteReply::Written { .. } => return self.surge_begun(deployment),
            WriteReply::Rejected { message } => return self.surge_refused(deployment, message),
            WriteReply::NodeGone => {
                return self.surge_refused(deployment, String::from("it was deleted or made anew"));
            }
            WriteReply::Forbidden { message } if run.count_refusal(now) >= forbidden_timeout => {
                return self.surge_refused(deployment, message);
            }
            WriteReply::Forbidden { message } => message,
            WriteReply::Conflict => {
                run.refused_since = None;
                String::from("the Deployment has changed meanwhile")
            }
            WriteReply::Failed { message } => {
                run.refused_since = None;
                message
            }
        };
        self.surge_again(deployment, message, Backoff::UNREACHABLE);
    }

    fn asked_surge(&mut self, deployment: &Uid) -> Option<&mut SurgeRun> {
        let run = self.surges.runs.get_mut(deployment);
        run.filter(|run| run.stage == Stage::Asked)
    }

    fn surge_begun(&mut self, deployment: &Uid) {
        let until = self.surge_end(deployment).unwrap_or(self.now);
        let step = match self.surges.method {
            SurgeMethod::Restart => SurgeStep::Restarted { until },
            SurgeMethod::Scale => SurgeStep::Raised { until },
        };
        self.set_stage(deployment, Stage::Begun, Some(step));
    }

    /// Another drain or a rollout has the Deployment: the turn of this drain comes once that is over.
    fn await_turn(&mut self, deployment: &Uid, message: String) {
        self.raises.withdrawn(deployment);
        let Some(run) = self.asked_surge(deployment) else {
            return;
        };
        run.since = None;
        run.refused_since = None;
        self.surge_again(deployment, message, Backoff::TURN);
    }

    fn surge_again(&mut self, deployment: &Uid, message: String, backoff: Backoff) {
        let now = self.now;
        let Some(run) = self.surges.runs.get_mut(deployment) else {
            return;
        };
        run.stage = Stage::Waiting;
        run.problem = Some(message.clone());
        run.retry_at = backoff.after(now, run.tries, deployment.as_str());
        run.tries = run.tries.saturating_add(1);
        let task = String::from(SURGE);
        self.outbox.notify(Notice::Retrying { task, message });
    }

    fn surge_refused(&mut self, deployment: &Uid, message: String) {
        self.raise_refused(deployment);
        self.give_surge_up(deployment, message);
    }

    fn give_surge_up(&mut self, deployment: &Uid, message: String) {
        self.set_stage(deployment, Stage::GivenUp, Some(SurgeStep::GaveUp { message }));
    }

    fn set_stage(&mut self, deployment: &Uid, stage: Stage, step: Option<SurgeStep>) {
        let Some(run) = self.surges.runs.get_mut(deployment) else {
            return;
        };
        run.stage = stage;
        let deployment = run.surge.deployment.clone();
        if let Some(step) = step {
            self.outbox.notify(Notice::Surge { deployment, step });
        }
    }

    /// Ends surges whose pods are gone, and those whose time is over.
    pub(super) fn end_surges(&mut self) {
        let budgets = &self.cluster;
        let has_room = |key: &BudgetKey| budgets.budget(key).is_some_and(|it| it.disruptions_allowed > 0);
        self.surges.renew_raises(self.now, has_room);
        let under_way = self.surges.runs.iter().filter(|(_, run)| run.is_under_way());
        let deployments: Vec<Uid> = under_way.map(|(uid, _)| uid.clone()).collect();
        for uid in deployments {
            let Some(run) = self.surges.runs.get(&uid) else {
                continue;
            };
            let mut pods = run.surge.pods.iter();
            if pods.all(|pod| self.cluster.pod(&pod.uid).is_none()) {
                // Of a raise, its end is the take-back.
                let is_restart = self.surges.method == SurgeMethod::Restart;
                self.set_stage(&uid, Stage::Over, is_restart.then_some(SurgeStep::Replaced));
            } else if self.surge_end(&uid).is_some_and(|end| self.now >= end)
                && !self.pods_to_replace(&run.surge.pods).is_empty()
            {
                let waited = HumanDuration(self.surge_timeout());
                let message = match (run.stage, &run.problem) {
                    (Stage::Begun, _) => format!("no replacement was ready within {waited}"),
                    (_, Some(problem)) => {
                        let what = match self.surges.method {
                            SurgeMethod::Restart => "it could not be restarted",
                            SurgeMethod::Scale => "its replicas could not be raised",
                        };
                        format!("{what} within {waited}: {problem}")
                    }
                    (_, None) => format!("the API server has not answered for {waited}"),
                };
                self.give_surge_up(&uid, message);
            }
        }
    }

    /// Withdraws surges that are no longer allowed and that the driver has not started.
    pub(super) fn take_back_surges(&mut self) {
        let idle = |run: &SurgeRun| {
            self.pods_to_replace(&run.surge.pods)
                .iter()
                .all(|uid| !self.is_in_turn(uid))
        };
        let asked = self
            .surges
            .runs
            .iter()
            .filter(|(_, run)| run.stage == Stage::Asked && idle(run));
        let unwanted: Vec<Uid> = asked.map(|(uid, _)| uid.clone()).collect();
        if unwanted.is_empty() {
            return;
        }
        let is_unwanted = |task: &Task| matches!(task, Task::Surge { deployment, .. } if unwanted.contains(&deployment.uid));
        for (_, job) in self.outbox.take_back(is_unwanted) {
            self.job_taken_back(job);
        }
    }

    /// A surge was taken back before the driver started it, so it may be asked for again.
    pub(super) fn surge_taken_back(&mut self, deployment: &Uid) {
        if let Some(run) = self.surges.runs.get_mut(deployment) {
            run.stage = Stage::Waiting;
        }
        self.raises.withdrawn(deployment);
    }

    pub(super) fn surge_timeout(&self) -> Duration {
        let settings = self.request.settings.surge.as_ref();
        settings.map_or(SurgeSettings::TIMEOUT, |surge| surge.timeout)
    }

    /// When its pods must be leaving.
    fn surge_end(&self, deployment: &Uid) -> Option<Time> {
        let run = self.surges.runs.get(deployment)?;
        Some(run.since? + self.surge_timeout())
    }

    /// When surges must be looked at.
    pub(super) fn surges_due(&self) -> impl Iterator<Item = Time> {
        let under_way = self.surges.runs.iter().filter(|(_, run)| run.is_under_way());
        let ends = under_way.filter_map(|(uid, _)| self.surge_end(uid));
        let tries = self.surges.runs.values().map(|run| run.retry_at);
        ends.chain(tries).chain([self.surges.choice.retry_at()])
    }
}

/// The task's name.
const SURGE: &str = "surge";

pub(super) fn surging(deployment: &DeploymentRef, method: SurgeMethod) -> Reason {
    Reason::Surging {
        workload: format!("{deployment}"),
        method,
    }
}
