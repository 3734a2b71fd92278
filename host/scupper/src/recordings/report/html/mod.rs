//! A report as one page that needs no script and no other file.

use scupper_engine::{HumanDuration, Time};
use scupper_recording::PodHistory;

use super::causes::{self, Kind};
use super::text::{SHOWN, few, gone, sentence, wave};
use super::{Report, TEXT};

const STYLE: &str = include_str!("style.css");

pub(super) fn page(report: &Report) -> String {
    let title = escaped(&report.title());
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{}</p>\n",
        escaped(&report.introduction())
    );
    if report.took_long() {
        path(&mut out, report);
    }
    for shadow in report.shadows() {
        out.push_str(&format!("<p>{}</p>\n", escaped(&shadow)));
    }
    if !report.history.pods.is_empty() {
        pods(&mut out, report);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// What the drain as a whole waited for.
fn path(out: &mut String, report: &Report) {
    out.push_str("<h2>Why it took so long</h2>\n");
    out.push_str(&format!("<p>{}.</p>\n", escaped(&sentence(report))));
    if let Some(advice) = report.advice() {
        out.push_str(&format!("<p>{}</p>\n", escaped(&advice)));
    }
    out.push_str("<div class=\"bar path\" aria-hidden=\"true\">");
    for part in &report.history.path {
        let (kind, cause) = causes::of_part(&report.history, part);
        span(out, report, kind, &cause, (part.from, part.to));
    }
    out.push_str("</div>\n<table>\n<thead><tr><th>Time</th><th>Cause</th></tr></thead>\n<tbody>\n");
    for total in report.totals.iter().filter(|total| total.took >= SHOWN) {
        out.push_str(&format!(
            "<tr><td class=\"time\">{}</td><td><i class=\"{}\" aria-hidden=\"true\"></i>{}</td></tr>\n",
            HumanDuration(total.took),
            total.kind.name(),
            escaped(&total.cause)
        ));
    }
    out.push_str("</tbody>\n</table>\n");
    legend(out);
}

fn legend(out: &mut String) {
    out.push_str("<p class=\"legend\">Colours:");
    for kind in Kind::ALL {
        out.push_str(&format!(
            " <span><i class=\"{}\" aria-hidden=\"true\"></i>{}</span>",
            kind.name(),
            kind.text()
        ));
    }
    out.push_str("</p>\n");
}

fn pods(out: &mut String, report: &Report) {
    let waves = report.history.plan.iter().flat_map(|plan| &plan.waves);
    let waves: Vec<_> = waves.map(|wave| wave.name.clone()).collect();
    out.push_str(
        "<h2>Pods</h2>\n<table class=\"pods\">\n<thead><tr><th>Pod</th><th>Wave</th><th>Gone after</th>\
         <th class=\"chart\" aria-hidden=\"true\">Time</th><th>Waited for</th></tr></thead>\n<tbody>\n",
    );
    for pod in &report.history.pods {
        row(out, report, &waves, pod);
    }
    out.push_str("</tbody>\n</table>\n");
}

fn row(out: &mut String, report: &Report, waves: &[String], pod: &PodHistory) {
    out.push_str(&format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"time\">{}</td>\
         <td class=\"chart\" aria-hidden=\"true\"><div class=\"bar\">",
        escaped(&pod.pod.to_string()),
        escaped(&wave(waves, pod)),
        gone(report, pod)
    ));
    for wait in &pod.waits {
        let (kind, cause) = causes::of_reason(&wait.reason, None);
        span(out, report, kind, &cause, (wait.from, wait.to));
    }
    let waited = few(&causes::of_pod(pod));
    out.push_str(&format!("</div></td><td>{}</td></tr>\n", escaped(&waited)));
}

/// A part of a bar that is as wide as the drain was long.
fn span(out: &mut String, report: &Report, kind: Kind, cause: &str, (from, to): (Time, Time)) {
    let whole = report
        .history
        .ended
        .since(report.history.started)
        .as_secs_f64()
        .max(0.001);
    let left = from.since(report.history.started).as_secs_f64() / whole * 100.0;
    let width = to.since(from).as_secs_f64() / whole * 100.0;
    out.push_str(&format!(
        "<b class=\"{}\" style=\"left:{left:.2}%;width:{width:.2}%\" title=\"{} {}\"></b>",
        kind.name(),
        HumanDuration(to.since(from)),
        escaped(cause)
    ));
}

/// Names and texts come from strangers.
fn escaped(text: &str) -> String {
    scupper_common::markup::html(text, 2 * TEXT)
}
