//! A report as one page that needs no script and no other file.

mod bars;

use scupper_engine::HumanDuration;
use scupper_recording::PodHistory;

use super::causes;
use super::overview::{self, Row};
use super::text::{SHOWN, few, gone, sentence, times, wave_name, wave_of};
use super::{Report, Reports, TEXT, theme};

const STYLE: &str = include_str!("style.css");

pub(super) fn page(reports: &Reports) -> String {
    let title = escaped(&overview::title(reports));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{}{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n",
        theme::variables()
    );
    if let [one] = &reports.drains[..] {
        drain(&mut out, reports, one, "h2");
    } else {
        several(&mut out, reports);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// All drains on one axis, with links to each, and what colours mean before the charts that have them.
fn several(out: &mut String, reports: &Reports) {
    out.push_str(&format!(
        "<p>{}</p>\n<p>All bars share one time axis, which begins with the first drain. Times in a drain's own section count from \
         its own beginning.</p>\n",
        escaped(&overview::introduction(reports))
    ));
    out.push_str(
        "<table class=\"drains wide\">\n<thead><tr><th>Node</th><th>Begun after</th><th>Ended after</th><th>End</th>\
         <th>Forecast duration</th><th class=\"chart\" aria-hidden=\"true\">",
    );
    bars::axis(out, &reports.axis);
    out.push_str("</th><th>Waited longest for</th></tr></thead>\n<tbody>\n");
    for (number, report) in reports.drains.iter().enumerate() {
        let row = Row::of(reports, report);
        out.push_str(&format!(
            "<tr><th scope=\"row\"><a href=\"#drain-{number}\">{}</a></th><td class=\"time\">{}</td><td class=\"time\">{}</td>\
             <td>{}</td><td>{}</td><td class=\"chart\" aria-hidden=\"true\">",
            escaped(&row.node),
            row.begun,
            row.ended,
            escaped(&row.end),
            row.forecast
        ));
        bars::of_drain(out, reports, report);
        out.push_str(&format!("</td><td>{}</td></tr>\n", escaped(&row.waited)));
    }
    out.push_str("</tbody>\n</table>\n");
    bars::legend(out, reports);
    for (number, report) in reports.drains.iter().enumerate() {
        out.push_str(&format!(
            "<section id=\"drain-{number}\" aria-labelledby=\"title-{number}\">\n<h2 id=\"title-{number}\">{}</h2>\n",
            escaped(&report.title())
        ));
        drain(out, reports, report, "h3");
        out.push_str("</section>\n");
    }
}

/// All of one drain, with headings of this level.
fn drain(out: &mut String, reports: &Reports, report: &Report, heading: &str) {
    out.push_str(&format!("<p>{}</p>\n", escaped(&report.introduction())));
    if let Some(forecast) = report.forecast() {
        out.push_str(&format!("<p>{}</p>\n", escaped(&forecast)));
    }
    if report.took_long() {
        path(out, reports, report, heading);
    }
    for shadow in report.shadows() {
        out.push_str(&format!("<p>{}</p>\n", escaped(&shadow)));
    }
    if report.history.waves.len() > 1 {
        waves(out, report, heading);
    }
    if !report.history.pods.is_empty() {
        pods(out, reports, report, heading);
    }
}

/// What the drain as a whole waited for. Of several drains, the legend stands before all of them.
fn path(out: &mut String, reports: &Reports, report: &Report, heading: &str) {
    out.push_str(&format!(
        "<{heading}>Why it took so long</{heading}>\n<p>{}.</p>\n",
        escaped(&sentence(report))
    ));
    if let Some(advice) = report.advice() {
        out.push_str(&format!("<p>{}</p>\n", escaped(&advice)));
    }
    out.push_str("<div class=\"path\" aria-hidden=\"true\">\n");
    bars::axis(out, &reports.axis);
    bars::of_drain(out, reports, report);
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
    if reports.drains.len() == 1 {
        bars::legend(out, reports);
    }
}

fn waves(out: &mut String, report: &Report, heading: &str) {
    out.push_str(&format!(
        "<{heading}>Waves</{heading}>\n<table>\n<thead><tr><th>Wave</th><th>Pods</th><th>Begun after</th><th>Gone after</th></tr>\
         </thead>\n<tbody>\n"
    ));
    for wave in &report.history.waves {
        let (begun, gone) = times(report, wave);
        out.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{begun}</td><td>{gone}</td></tr>\n",
            escaped(&wave_name(wave)),
            wave.pods
        ));
    }
    out.push_str("</tbody>\n</table>\n");
}

fn pods(out: &mut String, reports: &Reports, report: &Report, heading: &str) {
    out.push_str(&format!(
        "<{heading}>Pods</{heading}>\n<table class=\"pods wide\">\n<thead><tr><th>Pod</th><th>Wave</th><th>Gone after</th>\
         <th class=\"chart\" aria-hidden=\"true\">"
    ));
    bars::axis(out, &reports.axis);
    out.push_str("</th><th>Waited for</th></tr></thead>\n<tbody>\n");
    for pod in &report.history.pods {
        row(out, reports, report, pod);
    }
    out.push_str("</tbody>\n</table>\n");
}

fn row(out: &mut String, reports: &Reports, report: &Report, pod: &PodHistory) {
    out.push_str(&format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"time\">{}</td>\
         <td class=\"chart\" aria-hidden=\"true\"><div class=\"bar\">",
        escaped(&pod.pod.to_string()),
        escaped(&wave_of(report, pod)),
        gone(report, pod)
    ));
    for wait in &pod.waits {
        let cause = causes::of_reason(&wait.reason, &pod.pod, None);
        bars::span(out, reports, report, &cause, (wait.from, wait.to));
    }
    let waited = few(&causes::of_pod(pod));
    out.push_str(&format!("</div></td><td>{}</td></tr>\n", escaped(&waited)));
}

/// Names and texts come from strangers.
fn escaped(text: &str) -> String {
    scupper_common::markup::html(text, 2 * TEXT)
}
