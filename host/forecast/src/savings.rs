//! What would have made a recorded drain shorter: it is played as it was, and then with one thing changed at a time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{HookPhase, Intent};
use scupper_recording::{Beginning, DrainHistory, ObservedTimes, Recording};

use crate::basis::{Basis, hooks};
use crate::learned::{Learned, MANY, Workload};
use crate::play::Play;
use crate::{Situation, place, side_by_side, times_of_drained};

/// How often each drain is played.
const PLAYS: usize = 30;
/// So many changes of a kind are tried at most.
const TRIED: usize = 20;
/// The plays must come so near to what was recorded: the recorded time by this number.
const NEAR: u32 = 4;

/// Something that could have been otherwise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A budget, by namespace and name, lets one more pod go at a time.
    Budget(String, String),
    /// A hook takes no time.
    Hook(String, HookPhase),
    /// The pods of a workload end in half the time.
    Workload(Workload),
}

/// How much it would have saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saving {
    /// The change.
    pub change: Change,
    /// How much sooner the drain ends, in the middle of all plays.
    pub saves: Duration,
}

/// The changes that would have saved time, the one that saves most first. None of an uncordon, of a drain that continued
/// another one's or did not drain the node, and where the plays are not like what was recorded.
pub fn savings(recording: &Recording, history: &DrainHistory) -> Vec<Saving> {
    let header = &recording.header;
    let is_whole = header.request.intent == Intent::Drain && header.checkpoint.is_none();
    let drained = recording.end.as_ref().filter(|end| end.outcome == "Drained");
    let situation = situation(recording, history).filter(|_| is_whole);
    let (Some(situation), Some(end)) = (situation, drained) else {
        return Vec::new();
    };
    let times = ObservedTimes::of(recording);
    let (took, learned) = (end.at.since(header.at), learned(&times));
    let is_played = Basis::of(&situation, &learned).not_played.is_empty();
    let Some(played) = ends_after(&situation, &learned).filter(|_| is_played) else {
        return Vec::new();
    };
    if played.abs_diff(took) > took / NEAR {
        return Vec::new();
    }
    let saved = |change: Change| {
        let (situation, times) = changed(&change, situation.clone(), times.clone());
        let saves = played.checked_sub(ends_after(&situation, &self::learned(&times))?)?;
        (!saves.is_zero()).then_some(Saving { change, saves })
    };
    let mut savings: Vec<_> = changes(&situation, &times)
        .into_iter()
        .filter_map(saved)
        .collect();
    savings.sort_by(|one, other| {
        other
            .saves
            .cmp(&one.saves)
            .then_with(|| one.change.cmp(&other.change))
    });
    savings
}

fn situation(recording: &Recording, history: &DrainHistory) -> Option<Situation> {
    let Beginning { node, pods, budgets } = Beginning::of(recording)?;
    let request = &recording.header.request;
    let at = recording.header.at;
    let budgets = budgets.into_values().collect();
    let plan = history.plan.as_ref()?;
    Some(Situation::of(
        at,
        (request, &node),
        pods.into_values(),
        budgets,
        plan,
    ))
}

/// As if it had been seen often: these are the times, and not a few of many.
fn learned(times: &ObservedTimes) -> Learned {
    let mut learned = Learned::default();
    (0..MANY).for_each(|_| learned.add(times));
    learned
}

/// In the middle of all plays.
fn ends_after(situation: &Situation, learned: &Learned) -> Option<Duration> {
    let play = Play::of([situation], learned);
    let played = side_by_side(PLAYS, |seed| play.run(seed as u64, 1).played());
    let drained = times_of_drained(played.iter().map(|(_, played)| played));
    drained.get(place(PLAYS, 5)).copied()
}

/// All that could be otherwise; of many, the workloads whose pods took longest.
fn changes(situation: &Situation, times: &ObservedTimes) -> Vec<Change> {
    let budgets = situation.budgets_of_leaving();
    let budgets = budgets.map(|budget| Change::Budget(budget.namespace.clone(), budget.name.clone()));
    let hooks = hooks(situation).map(|(policy, phase)| Change::Hook(policy, phase));
    let mut longest: BTreeMap<Workload, Duration> = BTreeMap::new();
    for (pod, took) in times.endings.iter().chain(&times.cut_endings) {
        let known = longest.entry(Workload::of(pod)).or_default();
        *known = (*known).max(*took);
    }
    let mut workloads: Vec<_> = longest.into_iter().collect();
    workloads.sort_by_key(|(_, took)| Reverse(*took));
    let workloads = workloads
        .into_iter()
        .map(|(workload, _)| Change::Workload(workload));
    let mut changes: Vec<_> = budgets.take(TRIED).chain(hooks.take(TRIED)).collect();
    changes.extend(workloads.take(TRIED));
    changes
}

fn changed(
    change: &Change,
    mut situation: Situation,
    mut times: ObservedTimes,
) -> (Situation, ObservedTimes) {
    match change {
        Change::Budget(namespace, name) => {
            let is_it =
                |budget: &&mut scupper_engine::Budget| budget.namespace == *namespace && budget.name == *name;
            for budget in situation.budgets.iter_mut().filter(is_it) {
                budget.desired_healthy -= 1;
                if budget.current_healthy > budget.desired_healthy {
                    budget.disruptions_allowed += 1;
                }
            }
        }
        Change::Hook(policy, phase) => {
            let hooks = times.hooks.iter_mut().chain(&mut times.cut_hooks);
            let is_it = |hook: &&mut (String, HookPhase, Duration)| hook.0 == *policy && hook.1 == *phase;
            hooks.filter(is_it).for_each(|(.., took)| *took = Duration::ZERO);
        }
        Change::Workload(workload) => {
            let endings = times.endings.iter_mut().chain(&mut times.cut_endings);
            let is_it = |ending: &&mut (scupper_engine::Pod, Duration)| Workload::of(&ending.0) == *workload;
            endings.filter(is_it).for_each(|(_, took)| *took /= 2);
        }
    }
    (situation, times)
}
