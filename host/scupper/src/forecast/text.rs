//! A forecast in lines.

use std::time::Duration;

use super::Foreseen;
use crate::recordings;
use scupper_common::text::one_line;
use scupper_engine::HumanDuration;
use scupper_forecast::{Basis, Forecast, NO_END, READY_WITHIN};
use scupper_recording::DrainHistory;

/// Bytes of a foreign text.
const TEXT: usize = 300;
/// Things named in a line.
const NAMED: usize = 5;

pub(super) fn of(foreseen: &Foreseen) -> String {
    let node = one_line(&foreseen.node, TEXT);
    let forecast = match &foreseen.forecast {
        Ok(forecast) => forecast,
        Err(why) => {
            let why = one_line(why, 4 * TEXT);
            return format!("{node}: no drain would begin; `scupper plan {node}` says more\n  {why}");
        }
    };
    let mut lines = vec![format!(
        "{node}: {} of this drain",
        counted(forecast.plays, "play")
    )];
    lines.push(line("end", &end(forecast)));
    if let Some(limit) = foreseen.limit {
        let percent = (forecast.likelihood() * 100.0).floor();
        lines.push(line(
            "limit",
            &format!("{} holds in {percent} % of the plays", HumanDuration(limit)),
        ));
    }
    lines.extend(
        forecast
            .typical
            .as_ref()
            .map(|history| line("waits", &waits(forecast, history))),
    );
    if !forecast.never.is_empty() {
        let pods = few(forecast.never.iter().map(ToString::to_string));
        lines.push(line("never", &format!("{pods}: left in no play")));
    }
    let (known, assumed) = basis(&forecast.basis);
    lines.push(line("known", &known));
    lines.extend(assumed.iter().map(|text| line("assumed", text)));
    lines.join("\n")
}

/// `Probably: p50 1m30s, p90 2m10s, from 12 recorded drains.`
pub(super) fn in_short(forecast: &Forecast) -> String {
    let drains = counted(forecast.basis.recordings, "recorded drain");
    format!("Probably: {}, from {drains}.", end(forecast))
}

fn line(name: &str, text: &str) -> String {
    format!("  {name:<8} {text}")
}

/// `p50 1m30s, p90 2m10s`, `p50 1m30s; 30 of 200 plays end with DeadlineExceeded`
fn end(forecast: &Forecast) -> String {
    let quantiles = [(0.5, "p50"), (0.9, "p90")]
        .into_iter()
        .filter_map(|(share, name)| {
            let took = forecast.quantile(share)?;
            Some(format!("{name} {}", HumanDuration(took)))
        });
    let quantiles: Vec<_> = quantiles.collect();
    let others = forecast.other_ends.iter().map(|(end, times)| {
        let of = format!("{times} of {}", counted(forecast.plays, "play"));
        match end.as_str() {
            NO_END => format!("{of} do not end"),
            end => format!("{of} end with {end}"),
        }
    });
    let quantiles = (!quantiles.is_empty()).then(|| quantiles.join(", "));
    quantiles.into_iter().chain(others).collect::<Vec<_>>().join("; ")
}

fn waits(forecast: &Forecast, history: &DrainHistory) -> String {
    let waits = recordings::waits_of(history);
    match waits.first() {
        Some(longest) if forecast.other_ends.get(NO_END) == Some(&forecast.plays) => {
            format!("without an end for {}", one_line(&longest.cause, TEXT))
        }
        _ => {
            let took = history.ended.since(history.started);
            format!("of {}: {}", HumanDuration(took), recordings::few(&waits))
        }
    }
}

/// What the times rest on, and what is assumed instead of what is not known.
fn basis(basis: &Basis) -> (String, Vec<String>) {
    let known = match (basis.recordings, basis.known_workloads) {
        (0, _) => "nothing: no recorded drain was read".to_owned(),
        (recordings, 0) => format!("no workload, from {}", counted(recordings, "recorded drain")),
        (recordings, workloads) => format!(
            "how long pods of {} take to end, from {}",
            counted(workloads, "workload"),
            counted(recordings, "recorded drain")
        ),
    };
    let mut texts = Vec::new();
    if !basis.unknown_workloads.is_empty() {
        let workloads = basis
            .unknown_workloads
            .iter()
            .map(|(workload, pods)| format!("{workload} ({})", counted(*pods, "pod")));
        texts.push(format!(
            "{}: pods end after 1s, or up to their grace period",
            few(workloads)
        ));
    }
    if !basis.unknown_budgets.is_empty() {
        let [low, high] =
            [READY_WITHIN.start(), READY_WITHIN.end()].map(|span: &Duration| HumanDuration(*span));
        texts.push(format!(
            "{}: replacements are ready after {low} to {high}",
            few(basis
                .unknown_budgets
                .iter()
                .map(|budget| format!("budget {budget}")))
        ));
    }
    if !basis.closed_budgets.is_empty() {
        let budgets = few(basis
            .closed_budgets
            .iter()
            .map(|budget| format!("budget {budget}")));
        texts.push(format!(
            "{budgets}: allows no eviction now, and only this drain changes that"
        ));
    }
    if !basis.await_completion.is_empty() {
        let pods = few(basis.await_completion.iter().map(ToString::to_string));
        texts.push(format!("{pods}: the work that the drain waits for does not end"));
    }
    if !basis.finalizers.is_empty() {
        let pods = few(basis.finalizers.iter().map(ToString::to_string));
        texts.push(format!("{pods}: finalizers are removed at once"));
    }
    if !basis.unknown_hooks.is_empty() {
        let hooks = basis.unknown_hooks.iter();
        texts.push(format!(
            "{}: takes no time",
            few(hooks.map(|(policy, phase)| format!("{phase} hook of policy {policy}")))
        ));
    }
    (known, texts)
}

fn few(names: impl ExactSizeIterator<Item = String>) -> String {
    let all = names.len();
    let mut texts: Vec<_> = names.take(NAMED).map(|name| one_line(&name, TEXT)).collect();
    if all > NAMED {
        texts.push(format!("{} more", all - NAMED));
    }
    texts.join(", ")
}

fn counted(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}
