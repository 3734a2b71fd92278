//! Runs a drain: the real engine and the real policies, on a cluster in memory and in simulated time.
//!
//! It is the driver's `runner` without sockets and without waiting: the next event happens at once. It must not know
//! the expectations.

use std::time::Duration;

use scupper_engine::{
    Answer, Command, Drain, Event, HookPhase, HookStep, Intent, Notice, Outcome, Plan, PlanAnswer, Pod,
    Request, StepOutcome, Subject, Task, Time, Trigger,
};

use super::cluster_access::SharedCluster;
use super::recorded_policies::RecordedPolicies;
use scupper_policy::{DrainFacts, DrainInfo};
use scupper_policy_reload::Session;
use scupper_recording::{DrainHistory, HistoryObserver};
use scupper_report::DrainLines;
use scupper_runner::NodeSnapshot;
use scupper_runner::policy_calls::{self, EngineDrainInfo};

/// Commands and moments of one run; a drain with more of them loops.
const TURNS: usize = 200_000;

/// A drain under way.
pub(super) struct ScenarioRunner {
    pub(super) cluster: SharedCluster,
    policies: Session,
    /// Policies that are not loaded.
    pub(super) recorded: RecordedPolicies,
    observer: HistoryObserver,
    request: Request,
    started: Time,
    drain: Drain,
    facts: DrainFacts,
    progress: DrainLines,
    /// The plan, or the end of the drain.
    pub(super) plan: Option<Plan>,
    pub(super) outcome: Option<Outcome>,
    /// The answers of hooks, in order.
    pub(super) answers: Vec<HookAnswer>,
    /// The lines that the drain would print.
    pub(super) story: Vec<String>,
}

/// A hook's answer.
#[derive(Clone, Debug)]
pub(super) struct HookAnswer {
    pub(super) policy: String,
    pub(super) phase: HookPhase,
    /// The wave, the pod as `namespace/name`, or nothing.
    pub(super) subject: String,
    pub(super) outcome: StepOutcome,
    /// The time since the start of the drain.
    pub(super) after: Duration,
    /// The requests sent: `METHOD URL`.
    pub(super) sent: Vec<String>,
    /// The Kubernetes Events emitted: `REASON of OBJECT: NOTE`.
    pub(super) emitted: Vec<String>,
}

/// When to stop running the drain.
#[derive(Clone, Copy)]
pub(super) enum Until<'a> {
    /// There is a plan.
    Planned,
    /// A hook's answer satisfies this.
    Answer(&'a (dyn Fn(&HookAnswer) -> bool + Sync)),
    /// The drain has ended.
    Ended,
    /// The time is reached.
    Time,
}

/// Why the run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The awaited event has happened.
    There,
    /// The drain ended before it.
    Ended,
    /// The time limit passed before it.
    Time,
    /// No event is scheduled any more.
    Still,
    /// The drain loops.
    Circles,
}

impl ScenarioRunner {
    pub(super) fn begin(cluster: SharedCluster, policies: Session, request: Request) -> Self {
        let now = cluster.lock().model.now;
        let mut runner = Self {
            drain: Drain::new(now, request.clone()),
            cluster,
            policies,
            recorded: RecordedPolicies::default(),
            observer: HistoryObserver::default(),
            facts: DrainFacts::default(),
            started: now,
            progress: DrainLines::begin(now, &request).0,
            request,
            plan: None,
            outcome: None,
            answers: Vec::new(),
            story: Vec::new(),
        };
        runner.handle_first_events();
        runner
    }

    /// The driver dies and restarts.
    pub(super) fn restart(&mut self) {
        let now = self.now();
        let checkpoint = self.cluster.lock().model.node.checkpoint.clone();
        self.facts = DrainFacts::default();
        self.drain = match checkpoint {
            Some(checkpoint) => Drain::resume(now, self.request.clone(), checkpoint),
            None => Drain::new(now, self.request.clone()),
        };
        self.handle_first_events();
    }

    /// Uncordons the node.
    pub(super) fn uncordon(&mut self) {
        let now = self.now();
        self.request.intent = Intent::Uncordon;
        self.request.id = format!("{}-is-over", self.request.id);
        self.request.name = format!("{}-is-over", self.request.name);
        // A DrainRequest never requests an uncordon.
        self.cluster.lock().forget_drain_requests();
        if Trigger::of(&self.request.trigger) == Trigger::DrainRequest {
            self.request.trigger = Trigger::Command.name().to_owned();
        }
        self.request.deadline = None;
        self.started = now;
        self.outcome = None;
        self.progress = DrainLines::begin(now, &self.request).0;
        self.facts = DrainFacts::default();
        self.drain = Drain::new(now, self.request.clone());
        self.handle_first_events();
    }

    /// Cancels the drain.
    pub(super) fn cancel(&mut self, reason: &str) {
        self.handle(Event::Cancel {
            reason: reason.to_owned(),
        });
    }

    /// Runs until an event has happened, up to a time limit.
    pub(super) async fn go(&mut self, until: &Until<'_>, at_most: Time) -> Stop {
        for _ in 0..TURNS {
            self.report();
            if matches!(until, Until::Planned) && (self.plan.is_some() || self.outcome.is_some()) {
                return Stop::There;
            }
            if let Some(command) = self.drain.poll_command() {
                let answered = self.carry_out(command).await;
                self.report();
                let last = self.answers.last().filter(|_| answered);
                if let (Until::Answer(is_it), Some(last)) = (until, last)
                    && is_it(last)
                {
                    return Stop::There;
                }
                continue;
            }
            if self.handle_new_events() {
                continue;
            }
            if let Some(stop) = self.pass(until, at_most) {
                return stop;
            }
        }
        Stop::Circles
    }

    /// Takes one step of a hook, whatever the drain's current state.
    pub(super) async fn step(&self, step: &HookStep) -> StepOutcome {
        let info = policy_calls::info(
            &self.request,
            self.started,
            EngineDrainInfo::of(&self.drain),
            self.now(),
        );
        let step = (step, self.policies.state_version(&step.policy));
        match policy_calls::step(&self.policies, info, &NodeSnapshot::for_hook(&self.drain), step).await {
            Answer::Step { outcome, .. } => outcome,
            _ => StepOutcome::Done,
        }
    }

    /// The first planner's input.
    pub(super) fn draft(&self) -> Plan {
        let pods: Vec<Pod> = self.drain.pods().cloned().collect();
        scupper_engine::draft(&pods, &self.request.settings, self.now())
    }

    /// Calls a planner once.
    pub(super) async fn plan_once(&self, policy: &str, draft: &Plan) -> PlanAnswer {
        let info = policy_calls::info(
            &self.request,
            self.started,
            EngineDrainInfo::of(&self.drain),
            self.now(),
        );
        let settings = &self.request.settings;
        let shown = NodeSnapshot::for_hook(&self.drain);
        policy_calls::plan(&self.policies, info, &shown, settings, (policy, draft)).await
    }

    /// Advances the time without the drain.
    pub(super) fn wait(&self, span: Duration) {
        let mut cluster = self.cluster.lock();
        let now = cluster.model.now + span;
        cluster.advance(now);
    }

    pub(super) fn now(&self) -> Time {
        self.cluster.lock().model.now
    }

    /// Nothing happens now: advances to the next event.
    fn pass(&mut self, until: &Until<'_>, at_most: Time) -> Option<Stop> {
        if self.outcome.is_some() && !matches!(until, Until::Time) {
            return Some(match until {
                Until::Ended => Stop::There,
                _ => Stop::Ended,
            });
        }
        let timer = self.drain.poll_timeout().filter(|_| self.outcome.is_none());
        let due = self.cluster.lock().model.next_due();
        let next = timer.into_iter().chain(due).min();
        let waits_for_time = matches!(until, Until::Time);
        match next {
            Some(next) if next <= at_most => {
                self.advance(next);
                None
            }
            _ if waits_for_time => {
                self.advance(at_most);
                Some(Stop::There)
            }
            Some(_) => {
                self.advance(at_most);
                Some(Stop::Time)
            }
            None => Some(Stop::Still),
        }
    }

    fn advance(&mut self, to: Time) {
        // What pods wait for lasts only while time passes.
        self.observer.look(self.now(), &self.drain);
        let now = {
            let mut cluster = self.cluster.lock();
            cluster.advance(to);
            cluster.model.now
        };
        self.drain.handle_timeout(now);
    }

    fn handle_first_events(&mut self) {
        let events = self.cluster.lock().model.beginning();
        for event in events {
            self.handle(event);
        }
    }

    fn handle_new_events(&mut self) -> bool {
        let events = self.cluster.lock().model.take_events();
        let heard = !events.is_empty();
        for event in events {
            self.handle(event);
        }
        heard
    }

    fn handle(&mut self, event: Event) {
        match &event {
            Event::Pods(pods) | Event::Answer(_, Answer::Pods(pods)) => self.progress.know(pods),
            Event::PodApplied(pod) => self.progress.know([pod]),
            _ => {}
        }
        let now = self.now();
        self.drain.handle_event(now, event);
    }

    /// `true`: a hook has answered.
    async fn carry_out(&mut self, command: Command) -> bool {
        let Command { id, task } = command;
        let recorded = self.as_recorded(&task);
        let info = policy_calls::info(
            &self.request,
            self.started,
            EngineDrainInfo::of(&self.drain),
            self.now(),
        );
        let asked = self
            .facts
            .of_plan(self.drain.chains_begun(), self.cluster.lock().model.now);
        let answer = match (recorded, &task) {
            (Some(answer), _) => answer,
            (None, Task::Plan { policy, draft }) => Answer::Plan(
                policy_calls::plan(
                    &self.policies,
                    DrainInfo {
                        facts: Some(&asked),
                        ..info
                    },
                    &NodeSnapshot::for_planner(&self.drain),
                    &self.request.settings,
                    (policy, draft),
                )
                .await,
            ),
            (None, Task::Step { step, state_version }) => {
                let shown = NodeSnapshot::for_hook(&self.drain);
                policy_calls::step(&self.policies, info, &shown, (step, *state_version)).await
            }
            (None, task) => self.cluster.lock().model.carry_out(task),
        };
        let (sent, emitted) = {
            let mut cluster = self.cluster.lock();
            let cluster = &mut *cluster;
            (
                std::mem::take(&mut cluster.answers.sent),
                std::mem::take(&mut cluster.emitted),
            )
        };
        let stepped = match (&task, &answer) {
            (Task::Step { step, .. }, Answer::Step { outcome, .. }) => Some(HookAnswer {
                policy: step.policy.clone(),
                phase: step.phase,
                subject: self.subject(&step.subject),
                outcome: outcome.clone(),
                after: self.took(),
                sent,
                emitted,
            }),
            _ => None,
        };
        self.handle(Event::Answer(id, answer));
        let answered = stepped.is_some();
        self.answers.extend(stepped);
        self.handle_new_events();
        answered
    }

    /// The answer of a policy that is not loaded.
    fn as_recorded(&mut self, task: &Task) -> Option<Answer> {
        match task {
            Task::Plan { policy, draft } => self.recorded.plan(policy, draft).map(Answer::Plan),
            Task::Step { step, state_version } => {
                let (now, subject) = (self.now(), self.subject(&step.subject));
                let outcome = self.recorded.step(step, &subject, now)?;
                let state_version = *state_version;
                Some(Answer::Step {
                    outcome,
                    state_version,
                })
            }
            _ => None,
        }
    }

    fn subject(&self, subject: &Subject) -> String {
        match subject {
            Subject::Node => String::new(),
            Subject::Wave(name) => name.clone(),
            Subject::Pod(uid) => self.cluster.lock().model.name_of(uid),
        }
    }

    fn report(&mut self) {
        let now = self.now();
        while let Some(notice) = self.drain.poll_notice() {
            self.story.extend(self.progress.lines(now, &notice));
            self.observer.notice(now, &notice);
            match notice {
                Notice::Planned(plan) => self.plan = Some(plan),
                Notice::Finished { outcome, .. } => self.outcome = Some(outcome),
                _ => {}
            }
        }
    }

    /// What its pods waited for until now; nothing is observed any more.
    pub(super) fn history(&mut self) -> DrainHistory {
        let now = self.now();
        let mut observer = std::mem::take(&mut self.observer);
        observer.look(now, &self.drain);
        observer.history(self.started, now, self.request.intent)
    }

    /// The time since its start.
    pub(super) fn took(&self) -> Duration {
        self.now().since(self.started)
    }
}
