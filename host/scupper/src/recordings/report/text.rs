//! A report as Markdown.

use std::time::Duration;

use scupper_common::text::one_line;
use scupper_engine::HumanDuration;
use scupper_recording::PodHistory;

use super::causes::{self, Total};
use super::{Report, TEXT};

/// Causes named in a sentence or a cell.
const NAMED: usize = 3;
/// What took less than this would read 0s.
pub(super) const SHOWN: Duration = Duration::from_millis(100);

pub(super) fn markdown(report: &Report) -> String {
    let mut lines = vec![
        format!("# {}", cell(&report.title())),
        String::new(),
        cell(&report.introduction()),
    ];
    if report.took_long() {
        lines.extend([String::new(), format!("{}.", cell(&sentence(report)))]);
        let advice = report.advice();
        lines.extend(advice.iter().flat_map(|text| [String::new(), cell(text)]));
    }
    lines.extend(report.shadows().flat_map(|text| [String::new(), cell(&text)]));
    if !report.history.pods.is_empty() {
        let waves = report.history.plan.iter().flat_map(|plan| &plan.waves);
        let waves: Vec<_> = waves.map(|wave| cell(&wave.name)).collect();
        lines.extend([
            String::new(),
            "| Pod | Wave | Gone after | Waited for |".to_owned(),
            "|---|---|---|---|".to_owned(),
        ]);
        lines.extend(report.history.pods.iter().map(|pod| row(report, &waves, pod)));
    }
    lines.join("\n")
}

/// `Of 31m00s: 22m00s disruption budget pg, 6m00s ending of ReplicaSet web, …`
pub(super) fn sentence(report: &Report) -> String {
    let took = HumanDuration(report.history.ended.since(report.history.started));
    format!("Of {took}: {}", few(&report.totals))
}

/// The longest ones, and what they leave.
pub(crate) fn few(totals: &[Total]) -> String {
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

fn row(report: &Report, waves: &[String], pod: &PodHistory) -> String {
    format!(
        "| {} | {} | {} | {} |",
        cell(&pod.pod.to_string()),
        wave(waves, pod),
        gone(report, pod),
        cell(&few(&causes::of_pod(pod)))
    )
}

/// `2 low priority`
pub(super) fn wave(waves: &[String], pod: &PodHistory) -> String {
    let Some(number) = pod.wave else {
        return "none".to_owned();
    };
    let name = waves.get(number - 1).map_or("", String::as_str);
    format!("{number} {name}").trim_end().to_owned()
}

pub(super) fn gone(report: &Report, pod: &PodHistory) -> String {
    pod.gone
        .map_or_else(|| "still there".to_owned(), |gone| report.after(gone).to_string())
}

/// Names and texts come from strangers.
fn cell(text: &str) -> String {
    scupper_common::markup::markdown(text, 2 * TEXT)
}
