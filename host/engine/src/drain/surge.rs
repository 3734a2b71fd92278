//! Surges the Deployments that the plan names, each once: when its pods on the node may be evicted and their budget has no
//! room; for a restart also their hooks have finished. From then on the pods are evicted as usual, or the rollout removes
//! them.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::backoff::Backoff;
use super::outbox::Job;
use super::replies::WriteReply;
use crate::{
    DeploymentRef, HookPhase, HumanDuration, Notice, Pod, PodRef, Reason, Subject, Surge, SurgeMethod,
    SurgePlan, SurgeSettings, SurgeStep, Task, Time, Uid,
};

/// The surges of the agreed plan.
#[derive(Debug, Default)]
pub(super) struct Surges {
    method: SurgeMethod,
    runs: BTreeMap<Uid, SurgeRun>,
}

/// How far a surge has come.
#[derive(Debug)]
struct SurgeRun {
    surge: Surge,
    stage: Stage,
    /// When the surge was first asked for.
    since: Option<Time>,
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
    const fn is_under_way(&self) -> bool {
        self.since.is_some() && !matches!(self.stage, Stage::Over | Stage::GivenUp)
    }
}

impl Surges {
    pub(super) fn new(plan: &SurgePlan) -> Self {
        let runs = plan.surges.iter().map(|surge| {
            let run = SurgeRun {
                surge: surge.clone(),
                stage: Stage::Waiting,
                since: None,
                retry_at: Time::default(),
                tries: 0,
                problem: None,
            };
            (surge.deployment.uid.clone(), run)
        });
        Self {
            method: plan.method,
            runs: runs.collect(),
        }
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

    /// Why a pod with a surge under way is still there while its budget holds it.
    pub(super) fn surge_reason(&self, pod: &Uid) -> Option<Reason> {
        let run = self.surges.of_pod(pod).filter(|run| run.is_under_way());
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

    pub(super) fn ask_for_surge(&mut self, deployment: &DeploymentRef) {
        let now = self.now;
        let method = self.surges.method;
        let Some(run) = self.surges.runs.get_mut(&deployment.uid) else {
            return;
        };
        run.stage = Stage::Asked;
        run.since.get_or_insert(now);
        let task = Task::Surge {
            deployment: deployment.clone(),
            drain: self.request.id.clone(),
            method,
        };
        self.outbox.push(task, Job::Surge(deployment.uid.clone()));
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
    pub(super) fn surge_answered(&mut self, deployment: &Uid, reply: WriteReply) {
        let forbidden_timeout = self.request.settings.forbidden_timeout;
        let now = self.now;
        let until = self.surge_end(deployment).unwrap_or(now);
        let method = self.surges.method;
        self.raises.answered(deployment, &reply);
        let Some(run) = self.surges.runs.get_mut(deployment) else {
            return;
        };
        if run.stage != Stage::Asked {
            return;
        }
        let message = match reply {
            WriteReply::Written { .. } => {
                run.stage = Stage::Begun;
                let deployment = run.surge.deployment.clone();
                let step = match method {
                    SurgeMethod::Restart => SurgeStep::Restarted { until },
                    SurgeMethod::Scale => SurgeStep::Raised { until },
                };
                self.outbox.notify(Notice::Surge { deployment, step });
                return;
            }
            WriteReply::Rejected { message } => return self.surge_refused(deployment, message),
            WriteReply::NodeGone => {
                return self.surge_refused(deployment, String::from("it was deleted or made anew"));
            }
            WriteReply::Forbidden { message } => {
                let since = run.since.unwrap_or(now);
                if now.since(since) >= forbidden_timeout {
                    return self.surge_refused(deployment, message);
                }
                message
            }
            WriteReply::Conflict => String::from("the Deployment has changed meanwhile"),
            WriteReply::Failed { message } => message,
        };
        run.stage = Stage::Waiting;
        run.problem = Some(message.clone());
        run.retry_at = Backoff::UNREACHABLE.after(now, run.tries, &deployment.0);
        run.tries = run.tries.saturating_add(1);
        let task = String::from(SURGE);
        self.outbox.notify(Notice::Retrying { task, message });
    }

    fn surge_refused(&mut self, deployment: &Uid, message: String) {
        self.raise_refused(deployment);
        self.give_surge_up(deployment, message);
    }

    fn give_surge_up(&mut self, deployment: &Uid, message: String) {
        self.end_surge(deployment, Stage::GivenUp, Some(SurgeStep::GaveUp { message }));
    }

    fn end_surge(&mut self, deployment: &Uid, stage: Stage, step: Option<SurgeStep>) {
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
                self.end_surge(&uid, Stage::Over, is_restart.then_some(SurgeStep::Replaced));
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

    pub(super) fn surge_timeout(&self) -> core::time::Duration {
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
        under_way.flat_map(|(uid, run)| self.surge_end(uid).into_iter().chain([run.retry_at]))
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
