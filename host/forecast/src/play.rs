//! One play of the drain: the engine and the cluster model, with times that a seed has drawn.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use scupper_cluster_model::{ClusterModel, PodTimes};
use scupper_engine::{
    Answer, Command, Drain, Event, HookPhase, HookStep, Notice, Outcome, Plan, PlanAnswer, PolicyInfo,
    Request, StepOutcome, Task, Time, Uid,
};
use scupper_recording::{DrainHistory, FORMAT, Header, Input, Recording, Turn};

use crate::learned::{Learned, Times, Workload};
use crate::{Basis, NO_END, Situation};

/// The policy that has made the plan; the others only have their hooks.
const PLANNER: &str = "forecast";
/// A drain without a deadline is watched for so long.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// So many turns without a change of the cluster, and it will not change any more.
const STILL: usize = 400;

/// How one drain went.
pub(crate) struct Played {
    pub(crate) is_drained: bool,
    /// In one word.
    pub(crate) end: String,
    pub(crate) took: Duration,
    /// The pods of the plan that are still there.
    pub(crate) left: BTreeSet<Uid>,
}

/// What is the same in all plays.
pub(crate) struct Play<'a> {
    situation: &'a Situation,
    request: Request,
    until: Time,
    /// All that times are drawn of, each once: workloads, budgets.
    times: Vec<Times>,
    /// Of each pod the place of its own times, and of those of its replacement if it has a budget.
    pods: Vec<(usize, Option<usize>)>,
    hooks: BTreeMap<(String, HookPhase), Times>,
    basis: Basis,
}

impl<'a> Play<'a> {
    pub(crate) fn of(situation: &'a Situation, learned: &Learned) -> Self {
        let mut basis = Basis {
            recordings: learned.recordings,
            ..Basis::default()
        };
        let (mut known, mut unknown) = (BTreeSet::new(), BTreeMap::<Workload, usize>::new());
        let mut unknown_budgets = BTreeSet::new();
        let (mut times, mut workloads, mut budgets) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let mut pods = Vec::new();
        for pod in &situation.pods {
            let workload = Workload::of(pod);
            let (ends, is_known) = learned.ending(pod);
            let leaves = leaves(&situation.plan, &pod.id.uid);
            if leaves && is_known {
                known.insert(workload.clone());
            } else if leaves {
                *unknown.entry(workload.clone()).or_default() += 1;
            }
            // Pods of one workload may have different grace periods, as long as nothing is known of it.
            let ends = match is_known {
                true => *workloads.entry(workload).or_insert_with(|| add(&mut times, ends)),
                false => add(&mut times, ends),
            };
            let budget = situation.budgets.iter().find(|budget| budget.selects(pod));
            let replaced = budget.map(|budget| {
                let (replaced, is_known) = learned.replacement(&budget.namespace, &budget.name);
                let name = format!("{}/{}", budget.namespace, budget.name);
                if leaves && !is_known {
                    unknown_budgets.insert(name.clone());
                }
                *budgets.entry(name).or_insert_with(|| add(&mut times, replaced))
            });
            pods.push((ends, replaced));
        }
        let mut hooks = BTreeMap::new();
        for policy in &situation.request.policies {
            for phase in policy.phases.iter().filter(|phase| !phase.undoes()) {
                let hook = (policy.name.clone(), *phase);
                match learned.hook(&policy.name, *phase) {
                    Some(times) => hooks.extend([(hook, times)]),
                    None => basis.unknown_hooks.push(hook),
                }
            }
        }
        basis.known_workloads = known.len();
        basis.unknown_workloads = unknown.into_iter().collect();
        basis.unknown_budgets = unknown_budgets.into_iter().collect();
        let request = as_planned(situation);
        Self {
            until: request.deadline.unwrap_or(situation.at) + LONGEST,
            situation,
            request,
            times,
            pods,
            hooks,
            basis,
        }
    }

    pub(crate) fn basis(&self) -> Basis {
        self.basis.clone()
    }

    /// Plays it with the times of this seed.
    pub(crate) fn run(&self, seed: u64) -> Played {
        let mut run = Run::begin(self, seed);
        run.turns = None;
        run.go();
        run.played()
    }

    /// What the drain of this seed waited for.
    pub(crate) fn history(&self, seed: u64) -> Option<DrainHistory> {
        let mut run = Run::begin(self, seed);
        run.go();
        let recording = Recording {
            header: Header {
                format: FORMAT,
                program: String::new(),
                at: self.situation.at,
                wall: self.situation.at,
                request: self.request.clone(),
                checkpoint: None,
                policies: Vec::new(),
            },
            turns: run.turns.take()?,
            facts: Vec::new(),
            end: None,
            cut: None,
        };
        DrainHistory::of(&recording).ok()
    }
}

/// A surge and a look at a machine that is off need what no model has, and the plan is made already.
fn as_planned(situation: &Situation) -> Request {
    let mut request = situation.request.clone();
    request.settings.surge = None;
    request.settings.machine_is_off = false;
    for policy in &mut request.policies {
        policy.planner = false;
    }
    let planner = PolicyInfo {
        name: PLANNER.to_owned(),
        planner: true,
        ..PolicyInfo::default()
    };
    request.policies.insert(0, planner);
    request
}

fn add(times: &mut Vec<Times>, more: Times) -> usize {
    times.push(more);
    times.len() - 1
}

fn leaves(plan: &Plan, pod: &Uid) -> bool {
    plan.decision(pod)
        .is_some_and(|decision| decision.verdict.leaves())
}

/// A play under way.
struct Run<'a> {
    play: &'a Play<'a>,
    random: Rng,
    model: ClusterModel,
    drain: Drain,
    /// The turn under way, and those before it, if they are kept.
    turn: Turn,
    turns: Option<Vec<Turn>>,
    outcome: Option<Outcome>,
}

impl<'a> Run<'a> {
    fn begin(play: &'a Play<'a>, seed: u64) -> Self {
        let (situation, mut random) = (play.situation, Rng::with_seed(seed));
        let mut model = ClusterModel::new(situation.at, situation.node.clone());
        let shifts: Vec<f64> = play.times.iter().map(|times| times.shift(&mut random)).collect();
        let mut draw = |place: usize| {
            let times = play.times.get(place).zip(shifts.get(place));
            times.map(|(times, shift)| times.draw(*shift, &mut random))
        };
        for (pod, (ends, replaced)) in situation.pods.iter().zip(&play.pods) {
            let times = PodTimes {
                ends_after: draw(*ends).unwrap_or_default(),
                replaced_after: replaced.and_then(&mut draw).unwrap_or_default(),
            };
            model.add_pod(pod.clone(), times);
        }
        for budget in &situation.budgets {
            model.set_budget(budget.clone());
        }
        let drain = Drain::new(situation.at, play.request.clone());
        let mut run = Self {
            play,
            random,
            model,
            drain,
            turn: Turn::default(),
            turns: Some(Vec::new()),
            outcome: None,
        };
        for event in run.model.beginning() {
            run.tell(event);
        }
        run
    }

    fn go(&mut self) {
        let mut still = 0;
        while self.outcome.is_none() && still < STILL {
            self.look();
            let commands: Vec<_> = std::iter::from_fn(|| self.drain.poll_command()).collect();
            if !commands.is_empty() {
                self.turn.commands.clone_from(&commands);
                self.end_turn();
                commands.iter().for_each(|command| self.carry_out(command));
                continue;
            }
            let events = self.model.take_events();
            if !events.is_empty() {
                still = 0;
                events.into_iter().for_each(|event| self.tell(event));
                continue;
            }
            if !self.pass() {
                break;
            }
            still += 1;
        }
        self.end_turn();
    }

    fn carry_out(&mut self, command: &Command) {
        let answer = match &command.task {
            Task::Plan { .. } => Answer::Plan(PlanAnswer::Plan(self.play.situation.plan.clone())),
            Task::Step { step, state_version } => Answer::Step {
                outcome: self.step(step),
                state_version: *state_version,
            },
            task => self.model.carry_out(task),
        };
        self.tell(Event::Answer(command.id, answer));
    }

    /// The first call says when the hook will have finished, the second that it has.
    fn step(&mut self, step: &HookStep) -> StepOutcome {
        let times = self.play.hooks.get(&(step.policy.clone(), step.phase));
        match times {
            Some(times) if step.state.is_empty() => StepOutcome::Pending {
                state: vec![1],
                again_after: times.draw(1.0, &mut self.random),
                progress: String::new(),
                waiting_for: Vec::new(),
            },
            _ => StepOutcome::Done,
        }
    }

    fn look(&mut self) {
        while let Some(notice) = self.drain.poll_notice() {
            if let Notice::Finished { outcome, .. } = notice {
                self.outcome = Some(outcome);
            }
        }
    }

    /// Advances to the next moment; `false`: there is none.
    fn pass(&mut self) -> bool {
        let timer = self.drain.poll_timeout();
        let next = timer.into_iter().chain(self.model.next_due()).min();
        let Some(next) = next.filter(|next| *next <= self.play.until) else {
            return false;
        };
        self.end_turn();
        self.model.advance(next);
        let now = self.model.now;
        if self.turns.is_some() {
            self.turn.inputs.push((now, Input::Timeout));
        }
        self.drain.handle_timeout(now);
        true
    }

    fn tell(&mut self, event: Event) {
        let now = self.model.now;
        if self.turns.is_some() {
            let input = Input::Event(Cow::Owned(event.clone()));
            self.turn.inputs.push((now, input));
        }
        self.drain.handle_event(now, event);
    }

    fn end_turn(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        if let Some(turns) = &mut self.turns
            && turn != Turn::default()
        {
            turns.push(turn);
        }
    }

    fn played(&self) -> Played {
        let plan = &self.play.situation.plan;
        let left = self.model.pods().map(|pod| &pod.id.uid);
        Played {
            is_drained: matches!(self.outcome, Some(Outcome::Drained)),
            end: self
                .outcome
                .as_ref()
                .map_or_else(|| NO_END.to_owned(), |outcome| outcome.name().to_owned()),
            took: self.model.now.since(self.play.situation.at),
            left: left.filter(|uid| leaves(plan, uid)).cloned().collect(),
        }
    }
}
