//! `scupper forecast`: how a drain would probably go. The plan is made as by `scupper plan`, which changes nothing; then it is
//! played many times, without a cluster and without policies. Besides, the pods that come back are looked for a place on the
//! nodes that stay.

mod args;
mod room;
mod room_output;
mod saved;
mod services;
mod text;
mod together;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::PolicyArgs;
use crate::exit::Exit;
use crate::node::{self, PlannedBy};
use crate::output::{Output, complain, fail, failed, inform_of_no_node, print, wrong_options};
use crate::recordings;
use room::{NodeRoom, Rooms};
use scupper_cluster::{ClusterRoom, ReadError};
use scupper_common::clock::Clock;
use scupper_drain_report::{Total, waits_of};
use scupper_forecast::{Forecast, Learned, Situation, on_all_cores};
use scupper_recording::ListError;
use scupper_report::{Format, count};
use scupper_saved_cluster::SavedCluster;
use scupper_screen::{LiveDisplay, Screen, bar, cut};
use scupper_use_cases::{self as use_cases, Planned, Progress, Stage};
use together::All;

pub(crate) use args::ForecastArgs;
#[cfg(test)]
pub(crate) use saved::FromError;

/// For the pods of more nodes no room is looked for: each may go to each node of the cluster.
const MOST_NODES: usize = 100;
/// Whoever waits longer sees how far it is.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// What became of a node.
struct Foreseen {
    node: String,
    /// `Err`: why no drain would begin.
    forecast: Result<Forecast, Refused>,
    /// The cluster is a file without disruption budgets.
    has_no_budgets: bool,
    /// Disruption budgets could not be read.
    budgets_unread: bool,
    /// The drain's time limit.
    limit: Option<Duration>,
    /// Budgets of its pods that also count pods which leave other nodes of this forecast, and all these nodes.
    shared: Vec<(String, Arc<BTreeSet<String>>)>,
    /// Where its pods can come back; `Err`: why that is not known.
    room: Result<NodeRoom, String>,
    /// Why it is not known which Services its pods serve.
    services_unread: Option<String>,
}

/// Why no drain would begin.
struct Refused {
    why: String,
    exit: Exit,
}

pub(crate) async fn run(args: &ForecastArgs, output: Output, screen: &Screen) -> ExitCode {
    let by = PlannedBy::of(args.as_driver, &args.by);
    let mut options = match node::plan_options_of(&args.nodes, by, &args.drain, &args.policies, &args.cluster)
    {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    options.saved = match args.from.as_deref().map(saved::read).transpose() {
        Ok(saved) => saved,
        Err(error) => return fail(&error, Exit::Config),
    };
    if options.saved.is_some() {
        // It has no drivers.
        options.handed_over = None;
    }
    let saved_at = options.saved.as_ref().and_then(SavedCluster::saved_at);
    if let Some(moment) = saved_at {
        options.clock = Clock::starting_at(moment);
    }
    options.is_examined = false;
    let progress = options.progress.clone();
    let shown = show(screen, Clock::System, &progress);
    let has_no_budgets = options.saved.as_ref().is_some_and(|saved| !saved.has_budgets());
    let limit = options.settings.time_limit;
    let learned = match learned(args.recordings.clone(), &args.policies) {
        Ok(learned) => learned,
        Err(error) => return fail(&error, Exit::Config),
    };
    let (plans, room) = match use_cases::plan_with_room(options).await {
        Ok(read) => read,
        Err(error) => return failed(&error),
    };
    if plans.is_empty() {
        inform_of_no_node();
    }
    node::inform_of_drivers(&plans);
    let mut exit = Exit::Done;
    let plays = args
        .plays
        .map_or_else(|| plays_of(plans.len()), |plays| usize::from(plays.get()));
    let (nodes, all) = foresee(&plans, room, (&learned, plays), limit, &progress);
    drop(shown);
    for mut foreseen in nodes {
        foreseen.has_no_budgets = has_no_budgets;
        exit = exit.and(exit_of(&foreseen.forecast));
        print(&match output.format() {
            Format::Human => text::of(&foreseen),
            Format::Json => output.document(&document(&foreseen)),
        });
    }
    match (all, output.format()) {
        (Some(all), Format::Human) => print(&all.text()),
        (Some(all), Format::Json) => all.document().iter().for_each(|all| print(&output.document(all))),
        (None, _) => {}
    }
    exit.into()
}

/// If no play drains the node, the forecast fails, as a plan does. If some do, it only says so.
fn exit_of(forecast: &Result<Forecast, Refused>) -> Exit {
    match forecast {
        Err(refused) => refused.exit,
        Ok(forecast) if forecast.ends.drained.is_empty() => Exit::DrainFailed,
        Ok(_) => Exit::Done,
    }
}

/// How far it is, in a line that is redrawn, for whoever has to wait.
fn show(screen: &Screen, clock: Clock, progress: &Progress) -> LiveDisplay {
    let (began, progress) = (clock.now(), progress.clone());
    screen.show(clock, move |size, now| {
        let Stage { name, done, of } = progress.stage();
        let line = format!("{} {done} of {} {name}", bar(done, of), count(of, "node"));
        let is_shown = of > 0 && now.since(began) >= SHOWN_AFTER;
        is_shown
            .then(|| cut(&line, size.columns).into_owned())
            .into_iter()
            .collect()
    })
}

/// How often each drain is played, so that many take no longer than this many.
fn plays_of(nodes: usize) -> usize {
    const PLAYS: usize = 200;
    const FULL: usize = 5;
    const LEAST: usize = 10;
    (PLAYS * FULL / nodes.max(FULL)).max(LEAST)
}

/// What becomes of each node, and of all of them.
fn foresee(
    plans: &[Planned],
    room: Result<ClusterRoom, ReadError>,
    (learned, plays): (&Learned, usize),
    limit: Option<Duration>,
    progress: &Progress,
) -> (Vec<Foreseen>, Option<All>) {
    let mut situations: Vec<_> = plans.iter().map(situation).collect();
    for situation in situations.iter_mut().flatten() {
        // The plan has taken some of its time already.
        situation.request.deadline = limit.map(|limit| situation.at + limit);
    }
    let nodes = nodes_by_budget(situations.iter().flatten());
    let mut rooms = match &room {
        Ok(_) if plans.len() > MOST_NODES => Err(format!("that is done for up to {MOST_NODES} nodes")),
        Ok(room) => Ok(Rooms::of(room, situations.iter().flatten())),
        Err(error) => Err(error.to_string()),
    };
    let services = room.and_then(|room| room.services);
    if let Ok(services) = &services {
        let situations = situations.iter_mut().flatten();
        situations.for_each(|situation| services::add(situation, services));
    }
    let services_unread = services.err().map(|error| error.to_string());
    progress.begin("forecast", plans.len());
    let planned: Vec<_> = plans.iter().zip(&situations).collect();
    let forecasts = on_all_cores(planned.len(), |node| {
        let (planned, situation) = planned.get(node)?;
        let forecast = forecast(planned, situation.as_ref(), learned, plays);
        progress.step();
        Some(forecast)
    });
    let forecasts = forecasts.into_iter().flatten();
    let nodes = planned
        .iter()
        .zip(forecasts)
        .map(|((planned, situation), forecast)| Foreseen {
            node: planned.node.clone(),
            forecast,
            has_no_budgets: false,
            budgets_unread: planned.budgets.is_none(),
            limit,
            shared: shared(situation.as_ref(), &nodes),
            room: match &mut rooms {
                Ok(rooms) => Ok(rooms.take(&planned.node)),
                Err(why) => Err(why.clone()),
            },
            services_unread: services_unread.clone(),
        });
    let nodes = nodes.collect();
    let begins = situations.iter().flatten();
    (nodes, All::of(&begins.collect::<Vec<_>>(), learned, plays))
}

/// What recorded drains have shown; those that cannot be read are named.
pub(crate) fn learned(given: Option<PathBuf>, driver: &PolicyArgs) -> Result<Learned, ListError> {
    let Some(directory) = recordings::directory(given, driver) else {
        return Ok(Learned::default());
    };
    let (learned, unreadable) = Learned::read(directory.files()?, |_| true);
    for error in unreadable {
        complain(&scupper_driver::chain(&error));
    }
    Ok(learned)
}

/// The same for what a plan says in passing, which is a plan without them as well.
pub(crate) fn learned_if_readable(given: Option<PathBuf>, driver: &PolicyArgs) -> Learned {
    learned(given, driver).unwrap_or_else(|error| {
        complain(&scupper_driver::chain(&error));
        Learned::default()
    })
}

/// The nodes of which each budget counts pods that are to leave, if there are several.
fn nodes_by_budget<'a>(
    situations: impl Iterator<Item = &'a Situation>,
) -> BTreeMap<String, Arc<BTreeSet<String>>> {
    let mut nodes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for situation in situations {
        for budget in situation.budgets_of_leaving() {
            let name = format!("{}/{}", budget.namespace, budget.name);
            nodes.entry(name).or_default().insert(situation.node.name.clone());
        }
    }
    let shared = nodes.into_iter().filter(|(_, nodes)| nodes.len() > 1);
    shared.map(|(budget, nodes)| (budget, Arc::new(nodes))).collect()
}

/// Those that count pods of this node. Many nodes may have many of them in common, so none is copied.
fn shared(
    situation: Option<&Situation>,
    nodes: &BTreeMap<String, Arc<BTreeSet<String>>>,
) -> Vec<(String, Arc<BTreeSet<String>>)> {
    let Some(situation) = situation else {
        return Vec::new();
    };
    let own = nodes
        .iter()
        .filter(|(_, nodes)| nodes.contains(&situation.node.name));
    own.map(|(budget, nodes)| (budget.clone(), Arc::clone(nodes)))
        .collect()
}

/// The plays for what a plan says in passing.
const FEW: usize = 50;

/// One line for a plan, if something is known of its workloads.
pub(crate) fn in_short(planned: &Planned, learned: &Learned) -> Option<String> {
    let forecast = in_passing(planned, learned)?;
    Some(text::in_short(&forecast))
}

/// The same for programs.
pub(crate) fn in_numbers(planned: &Planned, learned: &Learned) -> Option<Value> {
    let forecast = in_passing(planned, learned)?;
    let seconds = |tenths: usize| forecast.quantile(tenths).map(|took| took.as_secs_f64());
    let basis = &forecast.basis;
    Some(json!({
        "p50Seconds": seconds(5),
        "p90Seconds": seconds(9),
        "recordings": basis.recordings,
        "knownWorkloads": basis.known_workloads,
        "unknownWorkloads": basis.unknown_workloads.len(),
    }))
}

fn in_passing(planned: &Planned, learned: &Learned) -> Option<Forecast> {
    let situation = situation(planned)?;
    learned
        .knows_any_of(&situation)
        .then(|| Forecast::of(&situation, learned, FEW))
}

/// What there is to play; `None`: no drain would begin.
fn situation(planned: &Planned) -> Option<Situation> {
    let plan = planned.result.as_ref().ok()?;
    let (request, node) = planned.drain.as_ref()?;
    let budgets = planned.budgets.clone().unwrap_or_default();
    let pods = planned.pods.iter().cloned();
    Some(Situation::of(planned.at, (request, node), pods, budgets, plan))
}

fn forecast(
    planned: &Planned,
    situation: Option<&Situation>,
    learned: &Learned,
    plays: usize,
) -> Result<Forecast, Refused> {
    match (&planned.result, situation) {
        (Err(outcome), _) => Err(Refused {
            why: outcome.to_string(),
            exit: Exit::of(outcome),
        }),
        (Ok(_), Some(situation)) => Ok(Forecast::of(situation, learned, plays)),
        (Ok(_), None) => Err(Refused {
            why: "the node was not seen".to_owned(),
            exit: Exit::Done,
        }),
    }
}

fn document(foreseen: &Foreseen) -> Value {
    let forecast = match &foreseen.forecast {
        Ok(forecast) => forecast,
        Err(refused) => return json!({"node": foreseen.node, "refused": refused.why}),
    };
    let basis = &forecast.basis;
    let waits = forecast.typical.as_ref().map(waits_of);
    let wait = |total: &Total| json!({"kind": total.kind.name(), "cause": total.cause, "seconds": total.took.as_secs_f64()});
    let pods = |(workload, pods): &(scupper_forecast::Workload, usize)| json!({"workload": workload.to_string(), "pods": pods});
    let shared = |(budget, nodes): &(String, Arc<BTreeSet<String>>)| {
        let others = nodes.iter().filter(|other| **other != foreseen.node);
        json!({"budget": budget, "nodes": others.collect::<Vec<_>>()})
    };
    let hook = |(policy, phase): &(String, scupper_engine::HookPhase)| json!({"policy": policy, "phase": phase.to_string()});
    let mut document = json!({
        "node": foreseen.node,
        "otherEnds": forecast.other_ends,
        "limitSeconds": foreseen.limit.map(|limit| limit.as_secs_f64()),
        "stillThere": forecast.still_there.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "waitsFor": waits.iter().flatten().map(wait).collect::<Vec<_>>(),
        "servicesUnread": foreseen.services_unread,
        "sharedBudgets": foreseen.shared.iter().map(shared).collect::<Vec<_>>(),
        "recordings": basis.recordings,
        "knownWorkloads": basis.known_workloads,
        "fewestTimes": basis.fewest_times,
        "unknownWorkloads": basis.unknown_workloads.iter().map(pods).collect::<Vec<_>>(),
        "unknownBudgets": basis.unknown_budgets,
        "unknownReplacements": basis.unknown_replacements.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "closedBudgets": basis.closed_budgets,
        "noBudgetsInFile": foreseen.has_no_budgets,
        "budgetsUnread": foreseen.budgets_unread,
        "awaitCompletion": basis.await_completion.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "finalizers": basis.finalizers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "unknownHooks": basis.unknown_hooks.iter().map(hook).collect::<Vec<_>>(),
        "cutWorkloads": basis.cut_workloads.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "cutHooks": basis.cut_hooks.iter().map(hook).collect::<Vec<_>>(),
        "room": foreseen.room.as_ref().ok().map(room_output::document),
        "roomUnread": foreseen.room.as_ref().err(),
        "notPlayed": basis.not_played.iter().map(|what| text::not_played(*what).0).collect::<Vec<_>>(),
    });
    if let (Some(document), Value::Object(ends)) = (document.as_object_mut(), together::ends(&forecast.ends))
    {
        document.extend(ends);
    }
    document
}
