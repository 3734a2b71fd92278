//! The bars of the page, on its time axis. Everything in them is also in a table, so screen readers do not read them.

use scupper_engine::{HumanDuration, Time};

use super::super::axis::{Axis, LAST};
use super::super::causes::{self, Kind};
use super::{Report, Reports, escaped};

/// The times of the axis.
pub(super) fn axis(out: &mut String, axis: &Axis) {
    out.push_str("<div class=\"axis\" aria-hidden=\"true\">");
    for (place, time) in axis.marks() {
        let side = if place > LAST { " class=\"last\"" } else { "" };
        out.push_str(&format!(
            "<span{side} style=\"left:{:.2}%\">{time}</span>",
            place * 100.0
        ));
    }
    out.push_str("</div>\n");
}

/// What the drain as a whole waited for, and below it what was forecast.
pub(super) fn of_drain(out: &mut String, reports: &Reports, report: &Report) {
    out.push_str("<div class=\"bar\">");
    for part in &report.history.path {
        let cause = causes::of_part(&report.history, part);
        span(out, reports, report, &cause, (part.from, part.to));
    }
    out.push_str("</div>\n");
    if let Some(estimate) = report.recording.estimate {
        let range = (estimate.early, estimate.late);
        let (left, width) = reports.axis.span(report, range);
        let likely = reports.axis.place(report, estimate.likely) * 100.0;
        let [early, late] = [estimate.early, estimate.late].map(|at| report.after(at));
        out.push_str(&format!(
            "<div class=\"bar range\"><b class=\"forecast\" style=\"left:{left:.2}%;width:{width:.2}%\" \
             title=\"forecast: {early} to {late}\"></b><b class=\"likely\" style=\"left:{likely:.2}%\"></b></div>\n"
        ));
    }
}

/// A part of a bar.
pub(super) fn span(
    out: &mut String,
    reports: &Reports,
    report: &Report,
    (kind, cause): &(Kind, String),
    (from, to): (Time, Time),
) {
    let (left, width) = reports.axis.span(report, (from, to));
    out.push_str(&format!(
        "<b class=\"{}\" style=\"left:{left:.2}%;width:{width:.2}%\" title=\"{} {}\"></b>",
        kind.name(),
        HumanDuration(to.since(from)),
        escaped(cause)
    ));
}

/// What the colours mean.
pub(super) fn legend(out: &mut String, reports: &Reports) {
    out.push_str("<p class=\"legend\">Colours:");
    let mut entry = |name: &str, text: &str| {
        out.push_str(&format!(
            " <span><i class=\"{name}\" aria-hidden=\"true\"></i>{text}</span>"
        ));
    };
    for kind in Kind::ALL {
        entry(kind.name(), kind.text());
    }
    if reports.have_forecasts() {
        entry("forecast", FORECAST);
    }
    out.push_str("</p>\n");
}

const FORECAST: &str = "the forecast at the start: eight of ten cases, and a mark in the middle";
