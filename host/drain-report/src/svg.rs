//! The chart of a report as one SVG that stands by itself: a bar for each drain and each pod on one time axis.
//!
//! It uses only what other programs than browsers know as well: no variables, no styles of text but one.

use scupper_engine::{HumanDuration, Time};
use scupper_recording::PodHistory;

use super::axis::LAST;
use super::causes::{self, Kind};
use super::{Report, Reports, TEXT, overview, text, theme};

/// Where the parts are, from left to right.
const WIDTH: u32 = 1200;
const EDGE: u32 = 16;
const LABEL: u32 = 312;
const CHART: f64 = 340.0;
const CHART_WIDTH: f64 = 844.0;
/// Heights of a bar, of what shows a forecast, and of a line.
const BAR: u32 = 10;
const RANGE: u32 = 5;
const LINE: u32 = 16;
/// The most letters of a name, which has its distinctive part at the end.
const NAME: usize = 38;
/// Entries of the legend in a row.
const COLUMNS: u32 = 4;
const COLUMN: u32 = 292;

pub(super) fn chart(reports: &Reports) -> String {
    let mut picture = Picture::default();
    picture.heading(&overview::title(reports), 18);
    picture.legend(reports);
    for report in &reports.drains {
        if reports.drains.len() > 1 {
            picture.below += LINE / 2;
            picture.heading(&report.title(), 14);
        }
        if let Some(forecast) = report.forecast() {
            picture.words(&forecast);
        }
        picture.marks(reports);
        picture.whole(reports, report);
        for pod in &report.history.pods {
            picture.pod(reports, report, pod);
        }
    }
    picture.marks(reports);
    let height = picture.below + EDGE;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"text\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n\
         <style>\n{}svg {{ color-scheme: light dark; max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }}\n</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n{}</svg>\n",
        escaped(&overview::title(reports)),
        description(reports),
        theme::fills(),
        picture.out
    )
}

/// What the picture shows, in words.
fn description(reports: &Reports) -> String {
    let mut sentences = Vec::new();
    if reports.drains.len() > 1 {
        sentences.push(overview::introduction(reports));
    }
    for report in &reports.drains {
        if reports.drains.len() > 1 {
            sentences.push(format!("{}.", report.title()));
        }
        sentences.extend(report.forecast());
        if report.took_long() {
            sentences.push(format!("{}.", text::sentence(report)));
        }
        sentences.extend(report.advice());
    }
    let sentences = sentences.iter().map(|sentence| escaped(sentence));
    sentences.collect::<Vec<_>>().join(" ")
}

/// A picture that grows downwards.
struct Picture {
    out: String,
    below: u32,
}

impl Default for Picture {
    fn default() -> Self {
        Self {
            out: String::new(),
            below: EDGE,
        }
    }
}

impl Picture {
    /// A text that ends where its place ends.
    fn text(&mut self, (x, width): (u32, u32), text: &str, style: &str) {
        self.out.push_str(&format!(
            "<svg x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"24\"><text y=\"12\"{style}>{}</text></svg>\n",
            self.below,
            escaped(text)
        ));
    }

    fn heading(&mut self, text: &str, size: u32) {
        let style = format!(" font-size=\"{size}\" font-weight=\"bold\" dy=\"4\"");
        self.text((EDGE, WIDTH - 2 * EDGE), text, &style);
        self.below += 24;
    }

    fn words(&mut self, text: &str) {
        self.text((EDGE, WIDTH - 2 * EDGE), text, "");
        self.below += LINE + 4;
    }

    fn legend(&mut self, reports: &Reports) {
        self.below += 4;
        let top = self.below;
        let mut entries: Vec<_> = Kind::ALL.map(|kind| (kind.name(), kind.text())).to_vec();
        if reports.have_forecasts() {
            entries.push(("forecast", "the forecast, eight of ten cases"));
        }
        for (place, (name, text)) in (0..).zip(entries) {
            let x = EDGE + place % COLUMNS * COLUMN;
            self.below = top + place / COLUMNS * (LINE + 4);
            self.out.push_str(&format!(
                "<rect class=\"{name}\" x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\"/>\n",
                self.below + 1
            ));
            self.text((x + 18, COLUMN - 24), text, "");
        }
        self.below += 2 * LINE;
    }

    /// The times of the axis.
    fn marks(&mut self, reports: &Reports) {
        for (place, time) in reports.axis.marks() {
            let x = place.mul_add(CHART_WIDTH, CHART);
            let (side, beside) = match place > LAST {
                true => ("end", x - 4.0),
                false => ("start", x + 4.0),
            };
            self.out.push_str(&format!(
                "<rect class=\"text\" x=\"{x:.1}\" y=\"{0}\" width=\"1\" height=\"{LINE}\"/>\
                 <text x=\"{beside:.1}\" y=\"{1}\" text-anchor=\"{side}\">{time}</text>\n",
                self.below,
                self.below + 11
            ));
        }
        self.below += LINE + 4;
    }

    /// The drain as a whole, and below it what was forecast.
    fn whole(&mut self, reports: &Reports, report: &Report) {
        self.track("the drain as a whole", "");
        for part in &report.history.path {
            let cause = causes::of_part(&report.history, part);
            self.span(reports, report, &cause, (part.from, part.to));
        }
        self.below += LINE;
        if let Some(estimate) = report.recording.estimate {
            let [early, late] = [estimate.early, estimate.late].map(|at| report.after(at));
            let (x, width) = spot(reports, report, (estimate.early, estimate.late));
            let (likely, _) = spot(reports, report, (estimate.likely, estimate.likely));
            self.out.push_str(&format!(
                "<rect class=\"forecast\" x=\"{x:.1}\" y=\"{0}\" width=\"{width:.1}\" height=\"{RANGE}\"><title>forecast: {early} to {late}\
                 </title></rect><rect class=\"text\" x=\"{likely:.1}\" y=\"{0}\" width=\"3\" height=\"{RANGE}\"/>\n",
                self.below - 2
            ));
            self.below += LINE / 2;
        }
    }

    fn pod(&mut self, reports: &Reports, report: &Report, pod: &PodHistory) {
        let name = pod.pod.to_string();
        let waited = text::few(&causes::of_pod(pod));
        let gone = text::gone(report, pod);
        self.track(&name, &format!("{name}: {gone}; {waited}"));
        for wait in &pod.waits {
            let cause = causes::of_reason(&wait.reason, &pod.pod, None);
            self.span(reports, report, &cause, (wait.from, wait.to));
        }
        self.below += LINE;
    }

    /// A label and an empty bar.
    fn track(&mut self, label: &str, title: &str) {
        self.text((EDGE, LABEL), &shortened(label), "");
        self.out.push_str(&format!(
            "<rect class=\"line\" opacity=\"0.4\" x=\"{CHART}\" y=\"{}\" width=\"{CHART_WIDTH}\" height=\"{BAR}\"><title>{}</title></rect>\n",
            self.below + 3,
            escaped(title)
        ));
    }

    fn span(
        &mut self,
        reports: &Reports,
        report: &Report,
        (kind, cause): &(Kind, String),
        (from, to): (Time, Time),
    ) {
        let (x, width) = spot(reports, report, (from, to));
        self.out.push_str(&format!(
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{BAR}\"><title>{} {}</title></rect>\n",
            kind.name(),
            self.below + 3,
            width.max(1.0),
            HumanDuration(to.since(from)),
            escaped(cause)
        ));
    }
}

/// Where a time of this drain is in the picture, and how wide.
fn spot(reports: &Reports, report: &Report, span: (Time, Time)) -> (f64, f64) {
    let (left, width) = reports.axis.span(report, span);
    (
        left.mul_add(CHART_WIDTH / 100.0, CHART),
        width * CHART_WIDTH / 100.0,
    )
}

/// Both ends of a long name.
fn shortened(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME {
        return name.to_owned();
    }
    let first: String = name.chars().take(NAME / 2).collect();
    let last: String = name.chars().skip(letters - NAME / 2).collect();
    format!("{first}…{last}")
}

/// Names and texts come from strangers, and a picture with a character that XML does not have is not shown at all.
fn escaped(text: &str) -> String {
    let text = scupper_common::markup::html(text, 2 * TEXT);
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
