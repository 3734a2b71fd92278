//! What all plays of some drains have in common: what is drained, and the times that are drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use scupper_engine::{Budget, HookPhase, Pod, PolicyInfo, Request, Time, Uid};
use scupper_recording::DrainHistory;

use crate::Situation;
use crate::basis::{hooks, leaving};
use crate::group::Group;
use crate::learned::{Learned, READY_WITHIN, Times, Workload};
use crate::notice::NOTICE;

/// The policy that has made the plan; the others only have their hooks.
const PLANNER: &str = "forecast";
/// A drain without a deadline is watched for so long.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// So long without a change of the cluster, besides what waves may take, and it will not change any more.
const STILL: Duration = Duration::from_secs(3600);
/// So long before the deadline, and before pods are forced, such a drain is looked at again.
const BEFORE: Duration = Duration::from_secs(600);

/// Drains of some nodes.
pub(crate) struct Play<'a> {
    pub(crate) nodes: Vec<NodePlay<'a>>,
    /// All that times are drawn of, each once: workloads, budgets, hooks.
    times: Vec<Times>,
    pub(crate) overhead: Option<usize>,
}

/// The drain of one of them.
pub(crate) struct NodePlay<'a> {
    pub(crate) situation: &'a Situation,
    pub(crate) request: Request,
    /// How long it is watched.
    pub(crate) longest: Duration,
    /// How long the cluster may stay as it is before it is taken to stay so.
    pub(crate) patience: Duration,
    /// How long after its start a drain in a cluster that stays as it is is looked at again.
    pub(crate) again: Option<Duration>,
    /// Of each pod the place of its own times, and of those of its replacement if it has a budget or serves.
    pub(crate) pods: Vec<(usize, Option<usize>)>,
    pub(crate) hooks: BTreeMap<(String, HookPhase), usize>,
    /// Those that count a pod that is to leave.
    pub(crate) budgets: Vec<&'a Budget>,
    pub(crate) leaving: BTreeSet<&'a Uid>,
    /// Pods that are endpoints of Services.
    pub(crate) serving: BTreeSet<&'a Uid>,
}

/// Whose times have a place already: what nodes have in common is drawn once.
#[derive(Default)]
struct Places<'a> {
    times: Vec<Times>,
    workloads: BTreeMap<(Workload, Option<u64>), usize>,
    replaced_by: BTreeMap<(&'a str, &'a str), usize>,
    replaced: BTreeMap<Workload, usize>,
    hooks: BTreeMap<(String, HookPhase), usize>,
}

/// The times of one play.
pub(crate) struct Draws<'a> {
    times: &'a [Times],
    random: Rng,
    /// What all times of a place have in common in this play.
    shifts: Vec<f64>,
}

impl<'a> Play<'a> {
    pub(crate) fn of(situations: impl IntoIterator<Item = &'a Situation>, learned: &Learned) -> Self {
        let mut places = Places::default();
        let nodes = situations.into_iter();
        let nodes = nodes.map(|situation| NodePlay::of(situation, learned, &mut places));
        let nodes = nodes.collect();
        let overhead = learned.overhead().map(|known| add(&mut places.times, known));
        Self {
            nodes,
            times: places.times,
            overhead,
        }
    }

    pub(crate) fn draws(&self, seed: u64) -> Draws<'_> {
        let mut random = Rng::with_seed(seed);
        Draws {
            shifts: self.times.iter().map(|times| times.shift(&mut random)).collect(),
            times: &self.times,
            random,
        }
    }

    /// Plays them with the times of this seed, so many at once.
    pub(crate) fn run(&self, seed: u64, at_once: usize) -> Group<'_> {
        let mut group = Group::begin(self, seed, at_once, false);
        group.go();
        group
    }

    /// What the drain of this seed does, where there is only one.
    pub(crate) fn history(&self, seed: u64) -> Option<DrainHistory> {
        let mut group = Group::begin(self, seed, 1, true);
        group.go();
        group.runs.into_iter().next()?.into_history()
    }
}

impl<'a> NodePlay<'a> {
    fn of(situation: &'a Situation, learned: &Learned, places: &mut Places<'a>) -> Self {
        let budgets: Vec<_> = situation.budgets_of_leaving().collect();
        let serving: BTreeSet<_> = situation
            .services
            .iter()
            .flat_map(|service| &service.pods)
            .collect();
        let pods = situation.pods.iter().map(|pod| {
            let ends = places.ending(learned, pod);
            let replaced = match budgets.iter().find(|budget| budget.selects(pod)) {
                Some(budget) => Some(places.replacement(learned, budget)),
                None => serving
                    .contains(&pod.id.uid)
                    .then(|| places.unknown_replacement(pod)),
            };
            (ends, replaced)
        });
        let pods = pods.collect();
        let request = as_planned(situation);
        let force = request.settings.at_deadline.as_ref();
        let within = force.map_or(Duration::ZERO, |force| force.within);
        let waves = situation.plan.waves.iter().filter_map(|wave| wave.timeout);
        let skipped = request.settings.filters.skip_wait_for_delete_timeout;
        let patience = waves.fold(
            STILL.saturating_add(within).saturating_add(skipped),
            Duration::saturating_add,
        );
        let limit = request.deadline.map(|deadline| deadline.since(situation.at));
        Self {
            longest: (limit.unwrap_or_default() + LONGEST).saturating_add(patience),
            patience,
            again: limit.map(|limit| limit.saturating_sub(within.saturating_add(BEFORE))),
            leaving: leaving(situation).map(|pod| &pod.id.uid).collect(),
            hooks: places.hooks(learned, situation),
            situation,
            request,
            pods,
            budgets,
            serving,
        }
    }

    /// The request of a drain that begins at this time.
    pub(crate) fn request_at(&self, now: Time) -> Request {
        let mut request = self.request.clone();
        let limit = request.deadline.map(|deadline| deadline.since(self.situation.at));
        request.deadline = limit.map(|limit| now + limit);
        request
    }
}

impl<'a> Places<'a> {
    fn ending(&mut self, learned: &Learned, pod: &Pod) -> usize {
        // What is not known of a workload depends on the grace period, which may differ between its pods.
        let grace = (!learned.knows(pod)).then_some(pod.grace_seconds);
        let times = &mut self.times;
        let place = self.workloads.entry((Workload::of(pod), grace));
        *place.or_insert_with(|| add(times, learned.ending(pod)))
    }

    fn replacement(&mut self, learned: &Learned, budget: &'a Budget) -> usize {
        let times = &mut self.times;
        let place = self.replaced_by.entry((&budget.namespace, &budget.name));
        *place.or_insert_with(|| {
            add(
                times,
                learned.replacement(budget).unwrap_or_else(unknown_replacement),
            )
        })
    }

    /// Of a pod without a budget.
    fn unknown_replacement(&mut self, pod: &Pod) -> usize {
        let times = &mut self.times;
        let place = self.replaced.entry(Workload::of(pod));
        *place.or_insert_with(|| add(times, unknown_replacement()))
    }

    fn hooks(&mut self, learned: &Learned, situation: &Situation) -> BTreeMap<(String, HookPhase), usize> {
        let known = hooks(situation).filter_map(|hook| Some((learned.hook(&hook.0, hook.1)?, hook)));
        let placed = known.map(|(known, hook)| {
            let times = &mut self.times;
            let place = *self
                .hooks
                .entry(hook.clone())
                .or_insert_with(|| add(times, known));
            (hook, place)
        });
        let mut placed: BTreeMap<_, _> = placed.collect();
        if let Some(before) = situation.request.settings.notice() {
            // The drain waits for its own only if a pod that has not finished is to leave.
            let is_told = leaving(situation).any(|pod| !pod.is_finished());
            let before = if is_told { before } else { Duration::ZERO };
            let place = add(&mut self.times, Times::Between(before, before));
            placed.insert((NOTICE.to_owned(), HookPhase::BeforeDrain), place);
        }
        placed
    }
}

impl Draws<'_> {
    /// A time of this place.
    pub(crate) fn draw(&mut self, place: usize) -> Option<Duration> {
        let times = self.times.get(place).zip(self.shifts.get(place));
        times.map(|(times, shift)| times.draw(*shift, &mut self.random))
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

const fn unknown_replacement() -> Times {
    Times::Between(*READY_WITHIN.start(), *READY_WITHIN.end())
}

fn add(times: &mut Vec<Times>, more: Times) -> usize {
    times.push(more);
    times.len() - 1
}
