//! What is said of several drains together.

use std::collections::BTreeMap;

use scupper_common::clock::rfc3339;
use scupper_common::text::one_line;
use scupper_engine::HumanDuration;

use super::{Report, Reports, TEXT};

/// What a page, a picture or a text is headed.
pub(super) fn title(reports: &Reports) -> String {
    match &reports.drains[..] {
        [one] => one.title(),
        several => format!("{} drains in {}", several.len(), HumanDuration(reports.axis.took)),
    }
}

/// When the first began, which one ended last, and how many ended how.
pub(super) fn introduction(reports: &Reports) -> String {
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for report in &reports.drains {
        let end = report.recording.end.as_ref();
        *ends
            .entry(end.map_or("without an end", |end| &end.outcome))
            .or_default() += 1;
    }
    let ends: Vec<_> = ends
        .into_iter()
        .map(|(end, drains)| format!("{drains} {}", one_line(end, TEXT)))
        .collect();
    let last = reports
        .drains
        .iter()
        .max_by_key(|report| report.wall(report.history.ended));
    let last = last.map_or_else(String::new, Report::node);
    format!(
        "The first began {}; the last to end, {last}, ended {} later. {}.",
        rfc3339(reports.axis.begin),
        HumanDuration(reports.axis.took),
        ends.join(", ")
    )
}

/// One row for each drain.
pub(super) struct Row {
    pub(super) node: String,
    /// After the first drain.
    pub(super) begun: HumanDuration,
    pub(super) ended: HumanDuration,
    pub(super) end: String,
    pub(super) forecast: String,
    /// The longest wait.
    pub(super) waited: String,
}

impl Row {
    pub(super) fn of(reports: &Reports, report: &Report) -> Self {
        let begin = reports.axis.begin;
        let after = |at| HumanDuration(report.wall(at).since(begin));
        let longest = report.totals.get(..1).unwrap_or_default();
        let range = report.recording.estimate.map(|estimate| {
            let [early, late] = [estimate.early, estimate.late].map(|at| report.after(at));
            format!("{early} to {late}")
        });
        Self {
            node: report.node(),
            begun: after(report.history.started),
            ended: after(report.history.ended),
            end: report.end(),
            forecast: range.unwrap_or_else(|| "none".to_owned()),
            waited: super::few(longest),
        }
    }
}
