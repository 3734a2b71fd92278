//! `scupper forecast`: how a drain would probably go. The plan is made as by `scupper plan`, which changes nothing; then it is
//! played many times, without a cluster and without policies. Besides, the pods that come back are looked for a place on the
//! nodes that stay.

mod args;
mod room;
mod room_output;
mod saved;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::PolicyArgs;
use crate::exit::Exit;
use crate::node;
use crate::output::{Output, complain, fail, failed, inform, print, wrong_options};
use crate::recordings::{self, Total};
use crate::use_cases::{self, Planned};
use room::{NodeRoom, Rooms};
use scupper_cluster::{ClusterRoom, ReadError};
use scupper_forecast::{Forecast, Learned, Situation};
use scupper_recording::ListError;
use scupper_report::Format;

pub(crate) use args::ForecastArgs;
#[cfg(test)]
pub(crate) use saved::FromError;

/// What became of a node.
struct Foreseen {
    node: String,
    /// `Err`: why no drain would begin.
    forecast: Result<Forecast, Refused>,
    /// The cluster is a file without disruption budgets.
    has_no_budgets: bool,
    /// The drain's time limit.
    limit: Option<Duration>,
    /// Budgets of its pods that also count pods which leave other nodes of this forecast, and these nodes.
    shared: Vec<(String, Vec<String>)>,
    /// Where its pods can come back; `Err`: why that is not known.
    room: Result<NodeRoom, String>,
}

/// Why no drain would begin.
struct Refused {
    why: String,
    /// `scupper plan` tells it as well, and more.
    by_plan: bool,
    exit: Exit,
}

pub(crate) async fn run(args: &ForecastArgs, output: Output) -> ExitCode {
    let mut options = match node::plan_options_of(
        &args.nodes,
        args.as_driver,
        &args.drain,
        &args.policies,
        &args.cluster,
    ) {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    options.saved = match args.from.as_deref().map(saved::read).transpose() {
        Ok(saved) => saved,
        Err(error) => return fail(&error, Exit::Config),
    };
    options.is_examined = false;
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
        inform("no node has these labels");
    }
    let mut exit = Exit::Done;
    let plays = usize::from(args.plays.get());
    for mut foreseen in foresee(&plans, room, &learned, plays, limit) {
        foreseen.has_no_budgets = has_no_budgets;
        exit = exit.and(
            foreseen
                .forecast
                .as_ref()
                .map_or_else(|refused| refused.exit, |_| Exit::Done),
        );
        print(&match output.format() {
            Format::Human => text::of(&foreseen),
            Format::Json => output.document(&document(&foreseen)),
        });
    }
    exit.into()
}

/// What becomes of each node.
fn foresee(
    plans: &[Planned],
    room: Result<ClusterRoom, ReadError>,
    learned: &Learned,
    plays: usize,
    limit: Option<Duration>,
) -> Vec<Foreseen> {
    let situations: Vec<_> = plans.iter().map(situation).collect();
    let nodes = nodes_by_budget(situations.iter().flatten());
    let rooms = room.map(|room| Rooms::of(&room, situations.iter().flatten()));
    let mut rooms = rooms.map_err(|error| error.to_string());
    let all = plans.iter().zip(situations).map(|(planned, situation)| Foreseen {
        node: planned.node.clone(),
        forecast: forecast(planned, situation, learned, plays, limit),
        has_no_budgets: false,
        limit,
        shared: shared(&planned.node, &nodes),
        room: match &mut rooms {
            Ok(rooms) => Ok(rooms.take(&planned.node)),
            Err(why) => Err(why.clone()),
        },
    });
    all.collect()
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

/// The nodes of which each budget counts pods that are to leave.
fn nodes_by_budget<'a>(
    situations: impl Iterator<Item = &'a Situation>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut nodes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for situation in situations {
        for budget in situation.budgets_of_leaving() {
            let name = format!("{}/{}", budget.namespace, budget.name);
            nodes.entry(name).or_default().insert(situation.node.name.clone());
        }
    }
    nodes
}

fn shared(node: &str, nodes: &BTreeMap<String, BTreeSet<String>>) -> Vec<(String, Vec<String>)> {
    let own = nodes.iter().filter(|(_, nodes)| nodes.contains(node));
    let with_others = own.map(|(budget, nodes)| {
        let others = nodes.iter().filter(|other| *other != node);
        (budget.clone(), others.cloned().collect::<Vec<_>>())
    });
    with_others.filter(|(_, others)| !others.is_empty()).collect()
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
    situation: Option<Situation>,
    learned: &Learned,
    plays: usize,
    limit: Option<Duration>,
) -> Result<Forecast, Refused> {
    match (&planned.result, situation) {
        (Err(outcome), _) => Err(Refused {
            why: outcome.to_string(),
            by_plan: true,
            exit: Exit::of(outcome),
        }),
        (Ok(_), Some(mut situation)) => {
            // The plan has taken some of its time already.
            situation.request.deadline = limit.map(|limit| situation.at + limit);
            match situation.notice_refusal() {
                Some(why) => Err(Refused {
                    why,
                    by_plan: false,
                    exit: Exit::Policy,
                }),
                None => Ok(Forecast::of(&situation, learned, plays)),
            }
        }
        (Ok(_), None) => Err(Refused {
            why: "the node was not seen".to_owned(),
            by_plan: true,
            exit: Exit::Done,
        }),
    }
}

fn document(foreseen: &Foreseen) -> Value {
    let forecast = match &foreseen.forecast {
        Ok(forecast) => forecast,
        Err(refused) => return json!({"node": foreseen.node, "refused": refused.why}),
    };
    let seconds = |tenths: usize| forecast.quantile(tenths).map(|took| took.as_secs_f64());
    let basis = &forecast.basis;
    let waits = forecast.typical.as_ref().map(recordings::waits_of);
    let wait = |total: &Total| json!({"kind": total.kind.name(), "cause": total.cause, "seconds": total.took.as_secs_f64()});
    let pods = |(workload, pods): &(scupper_forecast::Workload, usize)| json!({"workload": workload.to_string(), "pods": pods});
    let shared = |(budget, nodes): &(String, Vec<String>)| json!({"budget": budget, "nodes": nodes});
    let hook = |(policy, phase): &(String, scupper_engine::HookPhase)| json!({"policy": policy, "phase": phase.to_string()});
    json!({
        "node": foreseen.node,
        "plays": forecast.plays,
        "drained": forecast.drained.len(),
        "otherEnds": forecast.other_ends,
        "p10Seconds": seconds(1),
        "p50Seconds": seconds(5),
        "p90Seconds": seconds(9),
        "limitSeconds": foreseen.limit.map(|limit| limit.as_secs_f64()),
        "stillThere": forecast.still_there.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "waitsFor": waits.iter().flatten().map(wait).collect::<Vec<_>>(),
        "sharedBudgets": foreseen.shared.iter().map(shared).collect::<Vec<_>>(),
        "recordings": basis.recordings,
        "knownWorkloads": basis.known_workloads,
        "fewestTimes": basis.fewest_times,
        "unknownWorkloads": basis.unknown_workloads.iter().map(pods).collect::<Vec<_>>(),
        "unknownBudgets": basis.unknown_budgets,
        "closedBudgets": basis.closed_budgets,
        "noBudgetsInFile": foreseen.has_no_budgets,
        "awaitCompletion": basis.await_completion.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "finalizers": basis.finalizers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "unknownHooks": basis.unknown_hooks.iter().map(hook).collect::<Vec<_>>(),
        "cutWorkloads": basis.cut_workloads.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "cutHooks": basis.cut_hooks.iter().map(hook).collect::<Vec<_>>(),
        "room": foreseen.room.as_ref().ok().map(room_output::document),
        "roomUnread": foreseen.room.as_ref().err(),
        "notPlayed": basis.not_played.iter().map(|what| text::not_played(*what).0).collect::<Vec<_>>(),
    })
}
