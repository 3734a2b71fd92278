//! The scenario of a seed: the initial cluster, the policies, and all faults.

use std::time::Duration;

use scupper_engine::{Filters, HookPhase, Operator, Requirement, Selector, Settings};

use crate::cluster::Owner;
use crate::forcing;
use crate::generator::{self, Population};
use crate::policies::{HookScript, PlannerScript, PolicyScript};
use crate::rng::Rng;
use crate::surge;
use crate::timers::{Fault, Stream};
use crate::volumes;

/// The kind of world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// No fault, no other client, no policy: requests are counted.
    Calm,
    /// All faults pass in time: the drain must succeed.
    Kind,
    /// Anything may happen: the drain must end without a violation.
    Wild,
}

/// The probability of each fault, in a thousand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) throttled: u32,
    pub(crate) refused: u32,
    pub(crate) unreachable: u32,
    pub(crate) forbidden: u32,
    pub(crate) write_unavailable: u32,
    pub(crate) write_rejected: u32,
    pub(crate) list_unavailable: u32,
    pub(crate) duplicate: u32,
    pub(crate) reorder: u32,
    pub(crate) slow_policy: u32,
    pub(crate) late_timer: u32,
    pub(crate) early_timer: u32,
    pub(crate) slow_answer: u32,
    /// The usual delay of watch events.
    pub(crate) watch_lag: u64,
    pub(crate) crash_at_command: u32,
    pub(crate) crash_at_answer: u32,
    /// A starting process has waited for its turn.
    pub(crate) waits_for_its_turn: u32,
    /// A webhook for evictions does not answer.
    pub(crate) evictions_hang: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) mood: Mood,
    /// Who has cordoned the node: others, or a command of ours ahead of this drain.
    pub(crate) cordon: Owner,
    pub(crate) settings: Settings,
    /// From the beginning.
    pub(crate) deadline: Option<u64>,
    pub(crate) policies: Vec<PolicyScript>,
    pub(crate) population: Population,
    pub(crate) planned_faults: Vec<(u64, Fault)>,
    pub(crate) faults: Faults,
    pub(crate) crashes: u32,
    /// The time that the requester waits.
    pub(crate) patience: u64,
    /// A second request follows the first.
    pub(crate) second: Option<Second>,
    /// After a crash another trigger's request comes first, and the one that was under way never again.
    pub(crate) displaced: bool,
}

/// The order after the first drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    Uncordon,
    Drain,
}

const MINUTE: u64 = 60_000;

impl Scenario {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let mood = match rng.below(10) {
            0 => Mood::Calm,
            1..4 => Mood::Kind,
            _ => Mood::Wild,
        };
        let settings = settings(rng, mood);
        let population = generator::generate(rng, mood);
        let deadline = match mood {
            Mood::Calm => None,
            Mood::Kind => rng.chance(300).then_some(600 * MINUTE),
            Mood::Wild => rng.chance(700).then(|| rng.span(4 * MINUTE, 30 * MINUTE)),
        };
        let cordon = match rng.below(100) {
            0..15 if mood != Mood::Calm => Owner::Others,
            15..25 => Owner::Ours,
            _ => Owner::Nobody,
        };
        Self {
            mood,
            cordon,
            displaced: displaced(rng, &settings, mood),
            deadline,
            policies: policies(rng, mood),
            planned_faults: planned_faults(rng, mood, &population),
            population,
            faults: faults(rng, mood, &settings),
            settings,
            crashes: if mood == Mood::Calm {
                0
            } else {
                u32::try_from(rng.below(4)).unwrap_or(0)
            },
            patience: if mood == Mood::Wild {
                rng.between(2, 25) * MINUTE
            } else {
                180 * MINUTE
            },
            second: match rng.below(5) {
                0 | 1 => Some(Second::Uncordon),
                2 if mood != Mood::Calm => Some(Second::Drain),
                _ => None,
            },
        }
    }
}

/// A raise would be taken back for another request than the world checks.
fn displaced(rng: &mut Rng, settings: &Settings, mood: Mood) -> bool {
    mood == Mood::Wild && settings.surge.is_none() && rng.chance(250)
}

/// Settings that few requests have.
fn rarer_filters(rng: &mut Rng, mood: Mood) -> Filters {
    let mut filters = Filters::default();
    if mood != Mood::Wild {
        return filters;
    }
    filters.disable_eviction = rng.chance(60);
    if rng.chance(60) {
        filters.pod_selector.expressions.push(Requirement {
            key: String::from("app"),
            operator: Operator::NotIn,
            values: vec![format!("a{}", rng.below(3))],
        });
    } else if rng.chance(10) {
        filters.pod_selector = Selector::NOTHING;
    }
    filters
}

fn settings(rng: &mut Rng, mood: Mood) -> Settings {
    let wild = mood == Mood::Wild;
    Settings {
        filters: Filters {
            force: !wild || rng.chance(850),
            ignore_daemonsets: !wild || rng.chance(950),
            delete_emptydir_data: !wild || rng.chance(930),
            skip_wait_for_delete_timeout: Duration::from_secs(if wild && rng.chance(200) { 10 } else { 0 }),
            ..rarer_filters(rng, mood)
        },
        grace_seconds: rng.chance(200).then(|| rng.between(0, 60)),
        grace_only_longer: wild && rng.chance(300),
        max_in_flight: usize::try_from(if rng.chance(250) { rng.between(1, 3) } else { 32 }).unwrap_or(32),
        own_pod: None,
        uncordon_on_failure: rng.chance(300),
        returning_pod_evictions: if wild {
            u32::try_from(rng.below(4)).unwrap_or(0) + 1
        } else {
            1
        },
        wait_for_volumes: volumes::wait(rng, mood),
        at_deadline: forcing::at_deadline(rng, mood),
        surge: surge::settings(rng, mood),
        ..Settings::default()
    }
}

fn faults(rng: &mut Rng, mood: Mood, settings: &Settings) -> Faults {
    if mood == Mood::Calm {
        return Faults {
            watch_lag: 30,
            ..Faults::default()
        };
    }
    let wild = mood == Mood::Wild;
    let watch_lag = if rng.chance(150) {
        rng.between(1_000, 20_000)
    } else {
        30
    };
    let mut rate = |of: u32, most: u64| {
        if rng.chance(of) {
            u32::try_from(rng.between(5, most)).unwrap_or(0)
        } else {
            0
        }
    };
    Faults {
        throttled: rate(250, 300),
        refused: rate(200, 250),
        unreachable: rate(300, 300),
        forbidden: rate(100, 200),
        write_unavailable: rate(250, 300),
        write_rejected: if wild { rate(60, 100) } else { 0 },
        list_unavailable: rate(200, 500),
        duplicate: rate(400, 300),
        reorder: rate(400, 400),
        slow_policy: rate(300, 200),
        late_timer: rate(400, 300),
        early_timer: rate(400, 200),
        watch_lag,
        slow_answer: rate(300, 200),
        crash_at_command: rate(400, 150),
        crash_at_answer: rate(400, 150),
        waits_for_its_turn: if rng.chance(400) { 700 } else { 0 },
        evictions_hang: forcing::evictions_hang(rng, settings),
    }
}

fn policies(rng: &mut Rng, mood: Mood) -> Vec<PolicyScript> {
    let count = match mood {
        Mood::Calm => 0,
        _ => [0, 0, 1, 1, 1, 2, 2, 3]
            .get(usize::try_from(rng.below(8)).unwrap_or(0))
            .copied()
            .unwrap_or(0),
    };
    (0..count).map(|number| policy(rng, mood, number)).collect()
}

fn policy(rng: &mut Rng, mood: Mood, number: u32) -> PolicyScript {
    let planner = rng.chance(600).then(|| PlannerScript::new(rng, mood));
    let mut hooks = Vec::new();
    for phase in HookPhase::ALL {
        if rng.chance(300) {
            hooks.push((phase, HookScript::new(rng, mood)));
        }
    }
    PolicyScript {
        name: format!("policy-{number}"),
        planner,
        hooks,
    }
}

fn planned_faults(rng: &mut Rng, mood: Mood, population: &Population) -> Vec<(u64, Fault)> {
    let count = match mood {
        Mood::Calm => 0,
        _ if rng.chance(300) => 0,
        Mood::Kind => rng.between(1, 4),
        Mood::Wild => rng.between(1, 6),
    };
    let mut all = Vec::new();
    for _ in 0..count {
        let at = rng.span(20_000, 10 * MINUTE);
        if mood == Mood::Wild && rng.chance(400) {
            all.push((at, rough(rng)));
        } else {
            gentle(rng, mood, population, at, &mut all);
        }
    }
    refusals(rng, mood, &mut all);
    clock_steps(rng, mood, &mut all);
    broken_volumes(rng, mood, &mut all);
    all
}

/// The API server refuses writes for a while. In a kind world all refusals together are shorter than a drain tolerates.
fn refusals(rng: &mut Rng, mood: Mood, all: &mut Vec<(u64, Fault)>) {
    let longest = match mood {
        Mood::Calm => return,
        Mood::Kind => 35_000,
        Mood::Wild => 4 * MINUTE,
    };
    if !rng.chance(300) {
        return;
    }
    for _ in 0..rng.between(1, 3) {
        let at = rng.span(1, 5 * MINUTE);
        all.push((at, Fault::Forbidden(rng.between(1, longest))));
    }
}

/// The wall clock is set. In a kind world this makes no deadline pass, whichever process reads the clock.
fn clock_steps(rng: &mut Rng, mood: Mood, all: &mut Vec<(u64, Fault)>) {
    let longest = match mood {
        Mood::Calm => return,
        Mood::Kind => 30 * MINUTE,
        Mood::Wild => 24 * 60 * MINUTE,
    };
    if !rng.chance(300) {
        return;
    }
    for _ in 0..rng.between(1, 3) {
        let at = rng.span(20_000, 10 * MINUTE);
        let usual = if rng.chance(500) { 5_000 } else { longest };
        let by = i64::try_from(rng.between(1_000, usual)).unwrap_or(0);
        let by = if rng.chance(500) { -by } else { by };
        all.push((at, Fault::ClockStep(by)));
    }
}

/// The watch of volumes breaks, if there is one by then.
fn broken_volumes(rng: &mut Rng, mood: Mood, all: &mut Vec<(u64, Fault)>) {
    if mood != Mood::Calm && rng.chance(200) {
        all.push((rng.span(20_000, 10 * MINUTE), Fault::Break(Stream::Volumes)));
    }
}

/// Faults that a drain survives.
fn gentle(rng: &mut Rng, mood: Mood, population: &Population, at: u64, all: &mut Vec<(u64, Fault)>) {
    let what = match rng.below(14) {
        0 => Fault::Touch,
        1 => Fault::Break(Stream::Pods),
        2 => Fault::Break(Stream::Node),
        3 => Fault::Break(Stream::Budgets),
        4..7 => Fault::Arrival(Box::new(generator::late(rng, mood))),
        7 | 12 => Fault::DeletePod(rng.next()),
        13 => {
            for _ in 0..4 {
                all.push((at + rng.below(100), Fault::DeletePod(rng.next())));
            }
            Fault::DeletePod(rng.next())
        }
        8 => {
            all.push((at + rng.span(5_000, 3 * MINUTE), Fault::Cordon(Owner::Others)));
            Fault::Uncordon
        }
        9 => Fault::NamespaceDies(format!("ns{}", rng.below(3))),
        10 => match population.budgets.first() {
            Some(budget) if rng.chance(500) => Fault::BudgetDeleted(budget.0.name.clone()),
            Some(budget) => Fault::BudgetRelaxed(budget.0.name.clone()),
            None => Fault::Crash,
        },
        _ => Fault::Crash,
    };
    all.push((at, what));
}

/// Faults that may make a drain fail.
fn rough(rng: &mut Rng) -> Fault {
    match rng.below(14) {
        0..3 => Fault::Cancel,
        3..5 => Fault::Lost,
        5 => Fault::Deadline(None),
        6 | 7 => Fault::Deadline(Some(rng.span(20_000, 5 * MINUTE))),
        8 => Fault::Pause,
        9 => Fault::Uncordon,
        10 => Fault::Cordon(Owner::Others),
        11 => Fault::Wipe,
        12 => Fault::NodeDeleted,
        _ => Fault::NodeReplaced,
    }
}
