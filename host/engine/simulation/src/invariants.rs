//! Checks the engine's commands against the invariants, by the true state and by the events that the process has
//! received.

use std::collections::BTreeMap;
use std::mem::Discriminant;

use scupper_engine::{
    Answer, Checkpoint, CommandId, Decision, Event, EvictAnswer, HookPhase, HookStep, Intent, Notice,
    Outcome, Phase, Plan, PlanAnswer, Pod, PodRef, Reason, Request, StepOutcome, Subject, Task, Time, Uid,
    Verdict, whole_millis,
};

use crate::begun::BegunRecord;
use crate::cluster::{Cluster, NODE};
use crate::coverage::Coverage;
use crate::forbidden::ForbiddenRecord;
use crate::forcing::ForceRecord;
use crate::held::Held;
use crate::hookbook::HookBook;
use crate::hooks::version_of;
use crate::knowledge::Knowledge;
use crate::plans::Plans;
use crate::surge::SurgeRecord;
use crate::violation::{Broken, Checked, broken};
use crate::volumes::VolumeRecord;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Invariants {
    pub(crate) knowledge: Knowledge,
    pub(crate) plans: Plans,
    pub(crate) hooks: HookBook,
    pub(crate) volumes: VolumeRecord,
    pub(crate) forced: ForceRecord,
    pub(crate) forbidden: ForbiddenRecord,
    pub(crate) begun: BegunRecord,
    pub(crate) surges: SurgeRecord,
    /// The request of this episode.
    pub(crate) crashes: u32,
    /// The engine has reported the end.
    pub(crate) finished: bool,
    /// When an outcome was first seen.
    pub(crate) decided: Option<u64>,
    /// The current time.
    pub(crate) now: u64,
    /// The current time, according to this process.
    pub(crate) process_now: Time,
    /// The start of this process.
    pub(crate) since: u64,
    /// Events since then cannot have been processed.
    pub(crate) last_look: u64,
    /// No planner may be called before this time: one failed and set it.
    planners_rest: u64,
    /// An earlier process was rolling back.
    pub(crate) rolls_back: bool,
    /// An earlier process was rolling back after a cancel with this reason.
    pub(crate) cancelled: Option<String>,
    pub(crate) held: Held,
    /// An earlier process had completed this drain successfully.
    pub(crate) ended_well: bool,
    /// Another drain had ended when this one came in its place, or had drained the node: its cordon stays.
    pub(crate) inherits: bool,
    /// The reasons seen.
    pub(crate) reasons: Vec<Discriminant<Reason>>,
}

impl Invariants {
    pub(crate) fn begin_episode(&mut self) {
        *self = Self::default();
    }

    /// Another process starts.
    pub(crate) fn restart(&mut self, now: u64, request: &Request, checkpoint: Option<&Checkpoint>) {
        self.knowledge = Knowledge::new(request.deadline, checkpoint.map(|mark| mark.node.clone()));
        self.plans = Plans::resumed(checkpoint);
        self.hooks.restart(checkpoint);
        self.volumes = VolumeRecord::resumed(self.process_now, checkpoint);
        self.forced = ForceRecord::resumed(self.process_now, checkpoint);
        self.forbidden = ForbiddenRecord::default();
        self.begun = BegunRecord::resumed(self.process_now, checkpoint);
        self.surges = SurgeRecord {
            chosen: now,
            left: std::mem::take(&mut self.surges.left),
            ..SurgeRecord::default()
        };
        self.restore_raised(checkpoint);
        self.finished = false;
        self.decided = None;
        self.since = now;
        self.last_look = now;
        self.planners_rest = now;
        self.rolls_back = checkpoint.is_some_and(|checkpoint| checkpoint.phase == Phase::RollingBack);
        self.cancelled = checkpoint.and_then(|checkpoint| checkpoint.cancelled.clone());
        self.ended_well = checkpoint.is_some_and(|checkpoint| checkpoint.ended_well);
        self.held = Held::restored(checkpoint);
    }

    pub(crate) fn observe(
        &mut self,
        now: u64,
        event: &Event,
        asked: Option<&(CommandId, Task)>,
        snapshot: Option<u64>,
        truth: &Cluster,
        own: Option<&Uid>,
    ) {
        let was_cordoned = self.knowledge.is_cordoned();
        self.knowledge.observe(now, event, asked, snapshot, truth);
        self.sees_no_cordon();
        if self.knowledge.heard_node {
            self.held.sees(&self.knowledge);
        }
        let there = &self.knowledge.there;
        let deleting = &self.knowledge.deleting;
        let cordoned = self.knowledge.is_cordoned();
        self.hooks.forget(|subject| match subject {
            // The driver's own pod may have been the last one only briefly.
            Subject::Pod(uid) if Some(uid) == own => true,
            Subject::Pod(uid) => {
                !there.contains_key(uid) || deleting.contains(uid) || !cordoned || !was_cordoned
            }
            _ => false,
        });
    }

    /// Before an answer is delivered.
    pub(crate) fn answer(
        &mut self,
        now: u64,
        task: &Task,
        answer: &Answer,
        request: &Request,
        spoilt: bool,
        coverage: &mut Coverage,
    ) {
        self.begun.answered(task, answer);
        match (task, answer) {
            (Task::Plan { policy, .. }, Answer::Plan(PlanAnswer::Plan(plan))) if !spoilt => {
                let last = request.policies.iter().rev().find(|policy| policy.planner);
                if last.is_some_and(|last| last.name == *policy) {
                    self.plans.answered(plan, &self.knowledge.there);
                }
            }
            (
                _,
                Answer::Plan(PlanAnswer::Failed {
                    retry_after: Some(wait),
                    ..
                }),
            ) => {
                self.planners_rest = now + whole_millis(*wait).clamp(1_000, 300_000);
            }
            (Task::Step { step, .. }, Answer::Step { outcome, .. }) => {
                coverage.count("hook", outcome_name(outcome));
                self.hooks.answered(now, step, outcome);
            }
            (Task::Surge { deployment, .. }, answer) => {
                self.surge_answered(&deployment.uid, answer, coverage);
            }
            (task, Answer::Evict(answer)) => {
                let Some(pod) = task.removes() else {
                    return;
                };
                self.forbidden.answered(now, &pod.uid, answer);
                if !matches!(
                    answer,
                    EvictAnswer::Accepted | EvictAnswer::NotFound | EvictAnswer::UidMismatch { .. }
                ) {
                    self.plans.refused(&pod.uid);
                }
            }
            _ => {}
        }
    }

    /// The driver has taken a command.
    pub(crate) fn command(
        &mut self,
        now: u64,
        task: &Task,
        request: &Request,
        truth: &Cluster,
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        if self.finished {
            return broken(6, format!("{} after it has finished", task.name()));
        }
        self.volumes.command(self.process_now, task);
        self.saves_what_has_begun(task, request)?;
        if task.written_node().is_some() && task.written_node() != self.knowledge.node_uid.as_ref() {
            return broken(5, format!("{} of a node that is not its own", task.name()));
        }
        match task {
            Task::Evict { pod, .. } | Task::Delete { pod, .. } => {
                self.removal(now, task, pod, request, truth, outstanding)
            }
            Task::Plan { policy, .. } if now < self.planners_rest => broken(
                7,
                format!("{policy} is called although a planner has asked for a pause"),
            ),
            Task::Step { step, state_version } => {
                if *state_version != version_of(&step.state) {
                    return broken(8, format!("{step:?} is said to have version {state_version:?}"));
                }
                self.plans.tells(step, &self.knowledge.there, &self.hooks)?;
                self.step(now, step, request)
            }
            Task::Cordon { checkpoint, .. } => {
                if self.knowledge.is_over(now) {
                    return broken(4, "cordons although the drain is over");
                }
                if checkpoint.id != request.id {
                    return broken(5, "writes the checkpoint of another request");
                }
                self.all_done(request, HookPhase::BeforeCordon, &Subject::Node)
            }
            Task::Uncordon { .. } => self.uncordon(now, request),
            Task::Surge { .. } | Task::TakeBack { .. } => {
                self.deployment_write(now, task, request, truth, outstanding)
            }
            _ => Ok(()),
        }
    }

    /// Invariant 8: a rollback resumes with the outcome with which it began.
    pub(crate) fn saves_the_cancel(task: &Task, outcome: Option<&Outcome>) -> Checked {
        let (Task::Save { checkpoint, .. } | Task::Cordon { checkpoint, .. }) = task else {
            return Ok(());
        };
        let wanted = match outcome {
            Some(Outcome::Cancelled { reason }) if checkpoint.phase == Phase::RollingBack => Some(reason),
            _ => None,
        };
        if checkpoint.cancelled.as_ref() == wanted {
            Ok(())
        } else {
            let saved = &checkpoint.cancelled;
            broken(
                8,
                format!("it ends as {outcome:?} and saves as cancelled: {saved:?}"),
            )
        }
    }

    /// Invariant 1: a planner receives every pod of its draft. A chain plans for the pods present at its start, so only
    /// the first planner must see the latest deletions.
    pub(crate) fn shows_the_draft(&self, draft: &Plan, pods: &[Pod], is_first: bool) -> Checked {
        let shown = |uid: &Uid| pods.iter().find(|pod| pod.id.uid == *uid);
        for Decision { pod: uid, .. } in &draft.decisions {
            let Some(pod) = shown(uid) else {
                return broken(
                    1,
                    format!("a planner has to decide on {uid}, which it is not shown"),
                );
            };
            let reported = self.knowledge.there.get(uid).and_then(|known| known.deletion);
            if is_first && reported.is_some() && pod.deletion.is_none() {
                return broken(1, format!("a planner is shown {uid} without its deletion"));
            }
        }
        Ok(())
    }

    fn removal(
        &mut self,
        now: u64,
        task: &Task,
        pod: &PodRef,
        request: &Request,
        truth: &Cluster,
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        let uid = &pod.uid;
        let known = removed_pod(pod, truth)?;
        let is_forced = self.is_forced(now, task, request, known);
        self.removal_is_right(known, task, is_forced)?;
        self.removal_is_timely(now, uid)?;
        if is_forced {
            self.force_is_right(now, task, request, known)?;
        }
        if request.settings.own_pod.as_ref() == Some(pod) {
            self.own_pod_is_last(uid)?;
        }
        self.has_place(uid, is_forced, request, outstanding)?;
        if !is_forced && self.knowledge.deleting.contains(uid) {
            return broken(8, format!("evicts pod {uid} although its deletion was reported"));
        }
        self.all_done(request, HookPhase::BeforeDrain, &Subject::Node)?;
        self.all_done(request, HookPhase::BeforeEvict, &Subject::Pod(uid.clone()))?;
        self.wave_is_ready(request, known, task, is_forced)?;
        if is_forced {
            self.forced.sent.insert(uid.clone());
            self.plans.force(uid, &self.knowledge.there);
            return Ok(());
        }
        self.forced.sent.remove(uid);
        self.plans.ask(uid, &self.knowledge.there)
    }

    /// Invariant 1, and the verdict of the plan.
    fn removal_is_right(&self, known: &Pod, task: &Task, is_forced: bool) -> Checked {
        let uid = &known.id.uid;
        let verdict = match task {
            Task::Evict { .. } => Verdict::Evict,
            _ => Verdict::Delete,
        };
        if known.node != NODE {
            return broken(1, format!("{verdict:?} of {uid}, which is on another node"));
        }
        if known.is_mirror() {
            return broken(1, format!("{verdict:?} of the mirror pod {uid}"));
        }
        if self.knowledge.disproved.contains(uid) {
            return broken(1, format!("{verdict:?} of {uid}, which was reported gone"));
        }
        let said = self.plans.verdicts.get(uid).copied();
        let finished = self.knowledge.finished.contains(uid);
        match said {
            Some(said) if said == verdict => Ok(()),
            Some(_) if is_forced => Ok(()),
            Some(Verdict::AwaitCompletion) if finished && verdict == Verdict::Evict => Ok(()),
            _ if known.is_daemon() && !known.is_finished() => broken(
                2,
                format!("{verdict:?} of the DaemonSet pod {uid} against the plan, which says {said:?}"),
            ),
            said => broken(1, format!("{verdict:?} of {uid}, but the plan says {said:?}")),
        }
    }

    /// Invariant 4.
    pub(crate) fn removal_is_timely(&self, now: u64, uid: &Uid) -> Checked {
        if self.knowledge.is_over(now) || self.decided.is_some() {
            return broken(4, format!("evicts pod {uid} although the drain is over"));
        }
        if self.knowledge.paused.is_some() {
            return broken(
                4,
                format!("pod {uid} is asked to leave although the driver stops"),
            );
        }
        if !self.knowledge.is_cordoned() {
            return broken(
                4,
                format!("pod {uid} is asked to leave although the node is not cordoned"),
            );
        }
        Ok(())
    }

    /// Invariant 2.
    fn own_pod_is_last(&self, own: &Uid) -> Checked {
        let stays = |uid: &Uid| {
            self.plans
                .verdicts
                .get(uid)
                .is_some_and(|verdict| !verdict.leaves())
        };
        match self.knowledge.there.keys().find(|uid| *uid != own && !stays(uid)) {
            Some(other) => broken(2, format!("evicts the driver's own pod while {other} is there")),
            None => Ok(()),
        }
    }

    fn step(&mut self, now: u64, step: &HookStep, request: &Request) -> Checked {
        let wants = request.policies.iter().find(|policy| policy.name == step.policy);
        if !wants.is_some_and(|policy| policy.phases.contains(&step.phase)) {
            return broken(
                7,
                format!(
                    "{:?} of {} is called, which it did not ask for",
                    step.phase, step.policy
                ),
            );
        }
        let puts_back = step.phase == HookPhase::OnCancel;
        if puts_back && self.ended_well {
            return broken(8, "a drain that had ended well is rolled back");
        }
        if (self.knowledge.is_over(now) || self.decided.is_some()) && !puts_back {
            return broken(
                4,
                format!("{:?} is called although the drain is over", step.phase),
            );
        }
        if step.phase == HookPhase::AfterUncordon {
            self.all_done(request, HookPhase::BeforeUncordon, &Subject::Node)?;
        }
        self.hooks.ask(step, self.crashes, &self.plans)
    }

    /// Invariant 5: the origin of the uncordon. The server checks the owner of the cordon.
    fn uncordon(&mut self, now: u64, request: &Request) -> Checked {
        if request.intent == Intent::Uncordon {
            return self.all_done(request, HookPhase::BeforeUncordon, &Subject::Node);
        }
        if self.ended_well {
            return broken(8, "lifts the cordon of a drain that had ended well");
        }
        let cancelled = self.knowledge.stopped.is_some() || self.cancelled.is_some();
        let is_early = self.knowledge.is_ahead && !self.held.has_cordon;
        let is_ahead = is_early || self.held.ends_ahead || self.held.saved == Some(false);
        if !cancelled && !request.settings.uncordon_on_failure && !is_ahead {
            return broken(5, "lifts the cordon although it is to be kept after a failure");
        }
        let is_decided = self.decided.is_some() || (is_ahead && self.surges.ends);
        if !is_decided && !self.knowledge.is_over(now) && !request.settings.uncordon_on_failure {
            return broken(5, "lifts the cordon in the middle of a drain");
        }
        Ok(())
    }

    /// Every policy with this phase has finished it.
    pub(crate) fn all_done(&self, request: &Request, phase: HookPhase, subject: &Subject) -> Checked {
        // On a node that other clients had cordoned there is nothing to do before the cordon.
        let policies = request
            .policies
            .iter()
            .filter(|policy| policy.phases.contains(&phase));
        match policies
            .filter(|policy| !self.hooks.is_done(&policy.name, phase, subject))
            .map(|p| &p.name)
            .next()
        {
            Some(policy) => broken(7, format!("{policy} has not finished {phase} of {subject:?}")),
            None => Ok(()),
        }
    }

    /// The engine reports something.
    pub(crate) fn notice(&mut self, notice: &Notice, request: &Request) -> Checked {
        if self.finished {
            return broken(6, format!("reports something after it has finished: {notice:?}"));
        }
        self.volumes
            .notice((self.process_now, self.now), notice, request)?;
        self.notes_forced(notice, request)?;
        self.surge_notice(notice, request)?;
        match notice {
            Notice::Phase(phase) => {
                self.held.entered(*phase, &self.knowledge);
                Ok(())
            }
            Notice::Newcomer { pod } => self.sees_newcomer(pod),
            Notice::Planned(plan) => {
                self.waits_for_no_late_pod(plan)?;
                self.surges.planned(plan);
                let planners = request.policies.iter().any(|policy| policy.planner);
                self.plans.adopted(
                    self.process_now,
                    plan,
                    planners,
                    &request.settings,
                    &self.knowledge.there,
                )
            }
            Notice::WaveStarted { name, .. } => {
                self.plans.wave_begins(name);
                Ok(())
            }
            Notice::WaveOverdue { name } => {
                self.plans.overdue(name);
                Ok(())
            }
            Notice::Finished { .. } => {
                self.finished = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Invariant 1: the pod that a command removes exists, or has existed, under its own name.
fn removed_pod<'a>(pod: &PodRef, truth: &'a Cluster) -> Result<&'a Pod, Broken> {
    let uid = &pod.uid;
    let there = truth.pods.get(uid).map(|truth| &truth.pod);
    let Some(known) = there.or_else(|| truth.gone.get(uid).map(|(pod, _)| pod)) else {
        return Err(Broken::new(1, format!("removes {uid}, which never was")));
    };
    if known.id != *pod {
        return Err(Broken::new(
            1,
            format!("removes {uid} by a name that is not its own: {pod}"),
        ));
    }
    Ok(known)
}

const fn outcome_name(outcome: &StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Done => "Done",
        StepOutcome::Pending { state, .. } if state.len() > 1024 => "Oversized",
        StepOutcome::Pending { .. } => "Pending",
        StepOutcome::Failed {
            retry_after: Some(_), ..
        } => "Failed, again",
        StepOutcome::Failed { .. } => "Failed",
    }
}
