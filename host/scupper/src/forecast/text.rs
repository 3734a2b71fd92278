//! A forecast in lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use super::{Foreseen, room_output, services};
use scupper_common::text::one_line;
use scupper_engine::{HookPhase, HumanDuration, named};
use scupper_forecast::{Basis, Forecast, NO_END, NotPlayed, READY_WITHIN, Workload};
use scupper_recording::DrainHistory;
use scupper_report::count;

/// Bytes of a foreign text.
pub(super) const TEXT: usize = 300;
/// Things named in a line.
pub(super) const NAMED: usize = 5;

pub(super) fn of(foreseen: &Foreseen) -> String {
    let node = one_line(&foreseen.node, TEXT);
    let forecast = match &foreseen.forecast {
        Ok(forecast) => forecast,
        Err(refused) => {
            let why = one_line(&refused.why, 4 * TEXT);
            return format!("{node}: no drain would begin: {why}");
        }
    };
    let mut lines = vec![format!(
        "{node}: {} of this drain",
        count(forecast.ends.plays, "play")
    )];
    lines.push(line("end", &end(forecast)));
    if let Some(limit) = foreseen.limit {
        lines.push(line(
            "limit",
            &format!(
                "{} holds in {} of the plays",
                HumanDuration(limit),
                share(forecast)
            ),
        ));
    }
    lines.extend(
        forecast
            .typical
            .as_ref()
            .map(|history| line("waits", &waits(forecast, history))),
    );
    if !forecast.still_there.is_empty() {
        let pods = few(&forecast.still_there);
        lines.push(line("stays", &format!("{pods}: still there in every play")));
    }
    let shared = shared(&foreseen.node, &foreseen.shared);
    lines.extend(shared.iter().map(|text| line("shared", text)));
    match &foreseen.services_unread {
        Some(why) => lines.push(line(
            "service",
            &format!("not looked at: {}", one_line(why, 4 * TEXT)),
        )),
        None => {
            let losses = services::lines(&forecast.ends.services);
            lines.extend(losses.iter().map(|loss| line("service", loss)));
        }
    }
    lines.extend(
        room_output::lines(&foreseen.room)
            .iter()
            .map(|(name, text)| line(name, text)),
    );
    let (known, assumed) = basis(&forecast.basis);
    lines.push(line("known", &known));
    lines.extend(assumed.iter().map(|text| line("assumed", text)));
    let no_budgets = foreseen.has_no_budgets;
    lines.extend(no_budgets.then(|| line("assumed", "no disruption budgets: the file has none")));
    let unread = foreseen.budgets_unread;
    lines.extend(unread.then(|| line("assumed", "no disruption budgets: they could not be read")));
    let without = forecast.basis.not_played.iter();
    lines.extend(without.map(|what| line("without", not_played(*what).1)));
    lines.join("\n")
}

/// `Probably: p50 1m30s, p90 2m10s, from 12 recorded drains.`
pub(super) fn in_short(forecast: &Forecast) -> String {
    let Basis {
        recordings,
        known_workloads: known,
        ref unknown_workloads,
        ..
    } = forecast.basis;
    let end = match forecast.quantile(5) {
        Some(_) => end(forecast),
        None => {
            let most = forecast.other_ends.iter().max_by_key(|(_, times)| **times);
            match most.map_or(NO_END, |(end, _)| end.as_str()) {
                NO_END => "it does not end".to_owned(),
                end => format!("it ends with {end}"),
            }
        }
    };
    let of = match unknown_workloads.len() {
        0 => String::new(),
        unknown => format!(" of {known} of its {} workloads", known + unknown),
    };
    format!(
        "Probably: {end}, from {}{of}.",
        count(recordings, "recorded drain")
    )
}

/// The share of the plays that drain the node, rounded down.
fn share(forecast: &Forecast) -> String {
    match forecast.ends.drained.len() * 100 / forecast.ends.plays.max(1) {
        0 if !forecast.ends.drained.is_empty() => "less than 1 %".to_owned(),
        percent => format!("{percent} %"),
    }
}

pub(super) fn line(name: &str, text: &str) -> String {
    format!("  {name:<8} {text}")
}

/// A line for the budgets that the same nodes have in common; one for all of them where that would be many.
fn shared(node: &str, budgets: &[(String, Arc<BTreeSet<String>>)]) -> Vec<String> {
    let mut by_nodes: BTreeMap<&BTreeSet<String>, Vec<&str>> = BTreeMap::new();
    for (budget, nodes) in budgets {
        by_nodes.entry(nodes).or_default().push(budget);
    }
    if by_nodes.len() > NAMED {
        let nodes: BTreeSet<_> = budgets.iter().flat_map(|(_, nodes)| nodes.iter()).collect();
        let budgets = budgets.iter().map(|(budget, _)| budget.as_str());
        return vec![waits_with(budgets.collect(), node, nodes)];
    }
    let lines = by_nodes.into_iter();
    lines
        .map(|(nodes, budgets)| waits_with(budgets, node, nodes))
        .collect()
}

fn waits_with<'a>(budgets: Vec<&str>, node: &str, nodes: impl IntoIterator<Item = &'a String>) -> String {
    let (budget, count) = match budgets[..] {
        [_] => ("budget", "counts"),
        _ => ("budgets", "count"),
    };
    format!(
        "{budget} {} also {count} pods of {}: drained together, they wait for each other",
        few(budgets),
        few(nodes.into_iter().filter(|other| *other != node))
    )
}

/// `p50 1m30s, p90 2m10s`, `p50 1m30s; 30 of 200 plays end with DeadlineExceeded`
fn end(forecast: &Forecast) -> String {
    let others = forecast.other_ends.iter().map(|(end, times)| {
        let of = format!("{times} of {}", count(forecast.ends.plays, "play"));
        match end.as_str() {
            NO_END => format!("{of} do not end"),
            end => format!("{of} end with {end}"),
        }
    });
    quantiles(|tenths| forecast.quantile(tenths))
        .into_iter()
        .chain(others)
        .collect::<Vec<_>>()
        .join("; ")
}

/// `p50 1m30s, p90 2m10s`
pub(super) fn quantiles(of: impl Fn(usize) -> Option<Duration>) -> Option<String> {
    let known = [(5, "p50"), (9, "p90")].into_iter().filter_map(|(tenths, name)| {
        let took = of(tenths)?;
        Some(format!("{name} {}", HumanDuration(took)))
    });
    let known: Vec<_> = known.collect();
    (!known.is_empty()).then(|| known.join(", "))
}

fn waits(forecast: &Forecast, history: &DrainHistory) -> String {
    let waits = scupper_drain_report::waits_of(history);
    match scupper_drain_report::last_wait(history) {
        Some(cause) if forecast.other_ends.get(NO_END) == Some(&forecast.ends.plays) => {
            format!("without an end for {}", one_line(&cause, TEXT))
        }
        _ => {
            let took = history.ended.since(history.started);
            format!(
                "of {}: {}",
                HumanDuration(took),
                scupper_drain_report::few(&waits)
            )
        }
    }
}

/// What the times rest on, and what is assumed instead of what is not known.
fn basis(basis: &Basis) -> (String, Vec<String>) {
    let drains = count(basis.recordings, "recorded drain");
    let known = match (basis.recordings, basis.known_workloads) {
        (0, _) => "nothing: no recorded drain was read".to_owned(),
        (_, 0) => format!("no workload, from {drains}"),
        (_, workloads) => format!(
            "how long pods of {} take to end, each seen {} or more, from {drains}",
            count(workloads, "workload"),
            count(basis.fewest_times, "time"),
        ),
    };
    let budget = |budget: &String| format!("budget {budget}");
    let hook = |(policy, phase): &(String, HookPhase)| format!("{phase} hook of policy {policy}");
    let workload = |(workload, pods): &(Workload, usize)| format!("{workload} ({})", count(*pods, "pod"));
    let [low, high] = [READY_WITHIN.start(), READY_WITHIN.end()].map(|span: &Duration| HumanDuration(*span));
    let unbudgeted = basis.unknown_replacements.iter().map(ToString::to_string);
    let texts = [
        (
            few(basis.unknown_workloads.iter().map(workload)),
            "pods end between 1s and their grace period".to_owned(),
        ),
        (
            few(basis.unknown_budgets.iter().map(budget).chain(unbudgeted)),
            format!("replacements are ready after {low} to {high}"),
        ),
        (
            few(basis.closed_budgets.iter().map(budget)),
            "allows no eviction now, and only this drain changes that".to_owned(),
        ),
        (
            few(&basis.await_completion),
            "the work that the drain waits for does not end".to_owned(),
        ),
        (
            few(&basis.finalizers),
            "finalizers are removed at once".to_owned(),
        ),
        (
            few(basis.unknown_hooks.iter().map(hook)),
            "takes no time".to_owned(),
        ),
        (
            few(&basis.cut_workloads),
            "some took longer than recorded: they were forced, or outlasted their recording".to_owned(),
        ),
        (
            few(basis.cut_hooks.iter().map(hook)),
            "took longer than recorded once: it outlasted its recording".to_owned(),
        ),
    ];
    let texts = texts.into_iter().filter(|(names, _)| !names.is_empty());
    (
        known,
        texts.map(|(names, text)| format!("{names}: {text}")).collect(),
    )
}

/// Its name for programs, and the words for people.
pub(super) const fn not_played(what: NotPlayed) -> (&'static str, &'static str) {
    match what {
        NotPlayed::Surge => ("surge", "restarts of Deployments (surge)"),
        NotPlayed::Volumes => ("volumes", "the wait for the node's volumes"),
        NotPlayed::MachineIsOff => ("machineIsOff", "what the drain does because the machine is off"),
        NotPlayed::NodeNotReady => (
            "nodeNotReady",
            "the node's state: it is not Ready, and its pods may not end",
        ),
    }
}

pub(super) fn few<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    let names = names.into_iter().map(|name| one_line(&name.to_string(), TEXT));
    named(names, NAMED)
}
