//! One play of the drain: the engine and the cluster model, with times that a seed has drawn.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use scupper_cluster_model::{ClusterModel, PodTimes, Replaced};
use scupper_engine::{
    Answer, Budget, Command, Deletion, Drain, Event, HookPhase, HookStep, Notice, Outcome, PlanAnswer, Pod,
    PolicyInfo, Request, StepOutcome, Task, Time, Uid, whole_millis,
};
use scupper_recording::{End, FORMAT, Header, Input, Recording, Turn, waits_for_end};

use crate::basis::{hooks, leaving};
use crate::learned::{Learned, READY_WITHIN, Times, Workload};
use crate::notice::NOTICE;
use crate::{NO_END, Situation};

/// The policy that has made the plan; the others only have their hooks.
const PLANNER: &str = "forecast";
/// A drain without a deadline is watched for so long.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// So long without a change of the cluster, besides what waves may take, and it will not change any more.
const STILL: Duration = Duration::from_secs(3600);
/// So long before the deadline, and before pods are forced, such a drain is looked at again.
const BEFORE: Duration = Duration::from_secs(600);
/// A pod that is terminating for so long past its grace period does not end by itself.
const OVERDUE: Duration = Duration::from_secs(30);

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
    /// How long the cluster may stay as it is before it is taken to stay so.
    patience: Duration,
    /// When a drain in a cluster that stays as it is is looked at again.
    again: Option<Time>,
    /// All that times are drawn of, each once: workloads, budgets, hooks.
    times: Vec<Times>,
    /// Of each pod the place of its own times, and of those of its replacement if it has a budget.
    pods: Vec<(usize, Option<usize>)>,
    hooks: BTreeMap<(String, HookPhase), usize>,
    overhead: Option<usize>,
    /// Those that count a pod that is to leave.
    budgets: Vec<&'a Budget>,
    leaving: BTreeSet<&'a Uid>,
}

impl<'a> Play<'a> {
    pub(crate) fn of(situation: &'a Situation, learned: &Learned) -> Self {
        let (mut times, mut workloads, mut replaced_by) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let budgets: Vec<_> = situation.budgets_of_leaving().collect();
        let pods = situation.pods.iter().map(|pod| {
            // What is not known of a workload depends on the grace period, which may differ between its pods.
            let grace = (!learned.knows(pod)).then_some(pod.grace_seconds);
            let ends = *workloads
                .entry((Workload::of(pod), grace))
                .or_insert_with(|| add(&mut times, learned.ending(pod)));
            let budget = budgets.iter().find(|budget| budget.selects(pod));
            let replaced = budget.map(|budget| {
                let unknown = Times::Between(*READY_WITHIN.start(), *READY_WITHIN.end());
                let replaced = || learned.replacement(budget).unwrap_or(unknown);
                *replaced_by
                    .entry((&budget.namespace, &budget.name))
                    .or_insert_with(|| add(&mut times, replaced()))
            });
            (ends, replaced)
        });
        let pods = pods.collect();
        let known = hooks(situation).filter_map(|hook| Some((learned.hook(&hook.0, hook.1)?, hook)));
        let notice = situation.request.settings.notice();
        let notice = notice.map(|before| {
            let hook = (NOTICE.to_owned(), HookPhase::BeforeDrain);
            (Times::Between(before, before), hook)
        });
        let hooks = known
            .chain(notice)
            .map(|(known, hook)| (hook, add(&mut times, known)));
        let hooks = hooks.collect();
        let overhead = learned.overhead().map(|known| add(&mut times, known));
        let request = as_planned(situation);
        let force = request.settings.at_deadline.as_ref();
        let within = force.map_or(Duration::ZERO, |force| force.within);
        let waves = situation.plan.waves.iter().filter_map(|wave| wave.timeout);
        let skipped = request.settings.filters.skip_wait_for_delete_timeout;
        let patience = waves.fold(
            STILL.saturating_add(within).saturating_add(skipped),
            Duration::saturating_add,
        );
        Self {
            until: request.deadline.unwrap_or(situation.at) + LONGEST + patience,
            patience,
            again: request
                .deadline
                .map(|deadline| deadline - within.saturating_add(BEFORE)),
            leaving: leaving(situation).map(|pod| &pod.id.uid).collect(),
            situation,
            request,
            times,
            pods,
            hooks,
            overhead,
            budgets,
        }
    }

    /// A time of this place.
    fn draw(&self, place: usize, shifts: &[f64], random: &mut Rng) -> Option<Duration> {
        let times = self.times.get(place).zip(shifts.get(place));
        times.map(|(times, shift)| times.draw(*shift, random))
    }

    /// Plays it with the times of this seed.
    pub(crate) fn run(&self, seed: u64) -> Played {
        let mut run = Run::begin(self, seed);
        run.turns = None;
        run.go();
        run.played()
    }

    /// The drain of this seed, as if it had been recorded. `None`: no turns are kept.
    pub(crate) fn recording(&self, seed: u64) -> Option<Recording> {
        let mut run = Run::begin(self, seed);
        run.go();
        let end = run.outcome.as_ref().map(|outcome| End {
            at: run.model.now,
            outcome: outcome.name().to_owned(),
            text: outcome.to_string(),
        });
        Some(Recording {
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
            shadows: Vec::new(),
            estimate: None,
            end,
            cut: None,
        })
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
    let has_notice = request.policies.iter().any(|policy| policy.name == NOTICE);
    if request.settings.notice().is_some() && !has_notice {
        request.policies.push(PolicyInfo {
            name: NOTICE.to_owned(),
            phases: vec![HookPhase::BeforeDrain],
            ..PolicyInfo::default()
        });
    }
    request
}

/// A pod that is terminating when the drain begins has been since its grace period began.
fn terminating(model: &mut ClusterModel, pod: &Pod, times: PodTimes, deletion: &Deletion) {
    let (now, asked) = (
        model.now,
        deletion.at - Duration::from_secs(deletion.grace_seconds),
    );
    // What takes longer than it has by now may do so once more.
    let due = |after: Duration| {
        let due = asked + after;
        if due > now { due } else { now + after }
    };
    // One that is long overdue has a finalizer, or its kubelet is silent.
    if now.since(deletion.at) < OVERDUE {
        let ends = due(times.ends_after).min(deletion.at).max(now);
        model.ends_at(&pod.id.uid, ends);
    }
    if let Replaced::AfterRequest(after) = times.replaced {
        model.replaced_at(pod, due(after));
    }
}

fn add(times: &mut Vec<Times>, more: Times) -> usize {
    times.push(more);
    times.len() - 1
}

/// A play under way.
struct Run<'a> {
    play: &'a Play<'a>,
    random: Rng,
    /// What all times of a place have in common in this play.
    shifts: Vec<f64>,
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
        for budget in &play.budgets {
            model.set_budget((*budget).clone());
        }
        let shifts: Vec<f64> = play.times.iter().map(|times| times.shift(&mut random)).collect();
        let mut draw = |place: usize| play.draw(place, &shifts, &mut random);
        for (pod, (ends, replaced)) in situation.pods.iter().zip(&play.pods) {
            let times = PodTimes {
                ends_after: draw(*ends).unwrap_or_default(),
                replaced: replaced.and_then(&mut draw).map_or(Replaced::Never, |after| {
                    Replaced::by_controller(pod, waits_for_end(pod), after)
                }),
            };
            model.add_pod(pod.clone(), times);
            if let Some(deletion) = &pod.deletion {
                terminating(&mut model, pod, times, deletion);
            }
        }
        let drain = Drain::new(situation.at, play.request.clone());
        let mut run = Self {
            play,
            random,
            shifts,
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
        let (mut changed, mut again) = (self.model.now, self.play.again);
        loop {
            self.look();
            if self.outcome.is_some() {
                break;
            }
            let commands: Vec<_> = std::iter::from_fn(|| self.drain.poll_command()).collect();
            if !commands.is_empty() {
                if commands
                    .iter()
                    .any(|command| matches!(command.task, Task::Step { .. }))
                {
                    changed = self.model.now;
                }
                self.turn.commands.clone_from(&commands);
                self.end_turn();
                commands.iter().for_each(|command| self.carry_out(command));
                continue;
            }
            let events = self.model.take_events();
            if !events.is_empty() {
                changed = self.model.now;
                events.into_iter().for_each(|event| self.tell(event));
                continue;
            }
            let is_still =
                self.model.next_due().is_none() && self.model.now.since(changed) > self.play.patience;
            if is_still && let Some(again) = again.take().filter(|again| *again > self.model.now) {
                self.advance(again);
                changed = self.model.now;
            } else if is_still && self.play.again.is_none() || !self.pass() {
                break;
            }
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

    /// The first call draws when the hook will have finished, which is its state: the engine asks again at least every five
    /// minutes.
    fn step(&mut self, step: &HookStep) -> StepOutcome {
        let Some(place) = self.play.hooks.get(&(step.policy.clone(), step.phase)) else {
            return StepOutcome::Done;
        };
        let left = match <[u8; 8]>::try_from(step.state.as_slice()) {
            Ok(ends) => Time::from_millis(u64::from_le_bytes(ends)).since(self.model.now),
            Err(_) => {
                let drawn = self.play.draw(*place, &self.shifts, &mut self.random);
                drawn.unwrap_or_default()
            }
        };
        if left.is_zero() {
            return StepOutcome::Done;
        }
        let ends = (self.model.now + left).as_millis();
        StepOutcome::Pending {
            state: ends.to_le_bytes().to_vec(),
            again_after: left,
            progress: String::new(),
            waiting_for: Vec::new(),
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
        self.advance(next);
        true
    }

    fn advance(&mut self, to: Time) {
        self.end_turn();
        self.model.advance(to);
        let now = self.model.now;
        if self.turns.is_some() {
            self.turn.inputs.push((now, Input::Timeout));
        }
        self.drain.handle_timeout(now);
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

    fn played(&mut self) -> Played {
        let overhead = self.play.overhead;
        let overhead = overhead.and_then(|place| self.play.draw(place, &self.shifts, &mut self.random));
        let left = self.model.pods().map(|pod| &pod.id.uid);
        Played {
            is_drained: matches!(self.outcome, Some(Outcome::Drained)),
            end: self
                .outcome
                .as_ref()
                .map_or_else(|| NO_END.to_owned(), |outcome| outcome.name().to_owned()),
            took: self.model.now.since(self.play.situation.at)
                + Duration::from_millis(whole_millis(overhead.unwrap_or_default())),
            left: left
                .filter(|uid| self.play.leaving.contains(uid))
                .cloned()
                .collect(),
        }
    }
}
