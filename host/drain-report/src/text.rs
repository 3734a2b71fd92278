//! A report as Markdown, for a terminal, a pull request or a ticket.

use std::cmp::Reverse;
use std::time::Duration;

use scupper_common::text::one_line;
use scupper_engine::HumanDuration;
use scupper_recording::{PodHistory, WaveHistory};
use scupper_report::PodList;

use super::causes::{self, Total};
use super::overview::{self, Row};
use super::{Report, Reports, TEXT};

/// Causes named in a sentence or a cell.
const NAMED: usize = 3;
/// Pods in the table of the slowest.
const SLOWEST: usize = 10;
/// What took less than this would read 0s.
pub(super) const SHOWN: Duration = Duration::from_millis(100);

pub(super) fn markdown(reports: &Reports, list: PodList) -> String {
    let mut blocks = Vec::new();
    let is_one = reports.drains.len() == 1;
    if !is_one {
        blocks.push(format!("# {}", cell(&overview::title(reports))));
        blocks.push(cell(&overview::introduction(reports)));
        let header = [
            "Node",
            "Begun after",
            "Ended after",
            "End",
            "Forecast duration",
            "Waited longest for",
        ];
        let rows = reports.drains.iter().map(|report| {
            let row = Row::of(reports, report);
            let (begun, ended) = (row.begun.to_string(), row.ended.to_string());
            [row.node, begun, ended, row.end, row.forecast, row.waited]
        });
        blocks.push(table(&header, rows));
    }
    for report in &reports.drains {
        let heading = if is_one { "#" } else { "##" };
        blocks.push(format!("{heading} {}", cell(&report.title())));
        drain(&mut blocks, report, list);
    }
    blocks.join("\n\n")
}

fn drain(blocks: &mut Vec<String>, report: &Report, list: PodList) {
    blocks.push(cell(&report.introduction()));
    blocks.extend(report.forecast().map(|text| cell(&text)));
    if report.took_long() {
        blocks.push(format!("{}.", cell(&sentence(report))));
        blocks.extend(report.advice().map(|text| cell(&text)));
    }
    blocks.extend(report.shadows().map(|text| cell(&text)));
    let waves = &report.history.waves;
    if waves.len() > 1 {
        let header = ["Wave", "Pods", "Begun after", "Gone after"];
        let row = |wave: &WaveHistory| {
            let (begun, gone) = times(report, wave);
            [wave_name(wave), wave.pods.to_string(), begun, gone]
        };
        blocks.push(table(&header, waves.iter().map(row)));
    }
    let mut pods: Vec<_> = report.history.pods.iter().collect();
    if pods.is_empty() {
        return;
    }
    if list == PodList::ByWorkload && pods.len() > SLOWEST {
        // Those that are still there first.
        pods.sort_by_key(|pod| Reverse(pod.gone.map_or((true, None), |gone| (false, Some(gone)))));
        blocks.push(format!(
            "The slowest {SLOWEST} of {} pods (all: -o wide):",
            pods.len()
        ));
        pods.truncate(SLOWEST);
    }
    let header = ["Pod", "Wave", "Gone after", "Waited for"];
    let row = |pod: &&PodHistory| {
        let waited = few(&causes::of_pod(pod));
        [
            pod.pod.to_string(),
            wave_of(report, pod),
            gone(report, pod),
            waited,
        ]
    };
    blocks.push(table(&header, pods.iter().map(row)));
}

/// All cells come from strangers.
fn table<const COLUMNS: usize>(
    header: &[&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let header = line(header.iter().map(|&name| name.to_owned()).collect());
    let rows = rows.map(|row| line(row.iter().map(|text| cell(text)).collect()));
    let rule = format!("|{}", "---|".repeat(COLUMNS));
    [header, rule]
        .into_iter()
        .chain(rows)
        .collect::<Vec<_>>()
        .join("\n")
}

/// `Of 31m00s: 22m00s disruption budget pg, 6m00s ending of ReplicaSet web, …`
pub(super) fn sentence(report: &Report) -> String {
    format!("Of {}: {}", HumanDuration(report.took()), few(&report.totals))
}

/// The longest ones, and what they leave.
pub fn few(totals: &[Total]) -> String {
    let long = totals
        .iter()
        .filter(|total| total.took >= SHOWN)
        .count()
        .min(NAMED);
    let named = totals.iter().take(long);
    let mut texts: Vec<_> = named
        .map(|total| format!("{} {}", HumanDuration(total.took), one_line(&total.cause, TEXT)))
        .collect();
    let rest: Duration = totals.iter().skip(long).map(|total| total.took).sum();
    if rest >= SHOWN {
        texts.push(format!("{} other", HumanDuration(rest)));
    }
    match &texts[..] {
        [] => "nothing for long".to_owned(),
        texts => texts.join(", "),
    }
}

/// `2 low priority`
pub(super) fn wave_of(report: &Report, pod: &PodHistory) -> String {
    let mut waves = report.history.waves.iter();
    let wave = waves.find(|wave| Some(wave.number) == pod.wave);
    wave.map_or_else(|| "none".to_owned(), wave_name)
}

pub(super) fn wave_name(wave: &WaveHistory) -> String {
    let name = one_line(&wave.name, TEXT);
    format!("{} {name}", wave.number).trim_end().to_owned()
}

/// When a wave began, and when its last pod was gone.
pub(super) fn times(report: &Report, wave: &WaveHistory) -> (String, String) {
    let begun = wave.begun.map(|at| report.after(at).to_string());
    let gone = wave.gone.map(|at| report.after(at).to_string());
    (
        begun.unwrap_or_else(|| "not recorded".to_owned()),
        gone.unwrap_or_else(|| "some still there".to_owned()),
    )
}

pub(super) fn gone(report: &Report, pod: &PodHistory) -> String {
    pod.gone
        .map_or_else(|| "still there".to_owned(), |gone| report.after(gone).to_string())
}

/// Names and texts come from strangers.
fn cell(text: &str) -> String {
    scupper_common::markup::markdown(text, 2 * TEXT)
}
