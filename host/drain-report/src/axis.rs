//! The time axis that all drains of a report share. It begins with the first drain.

use std::time::Duration;

use scupper_engine::{HumanDuration, Time};

use super::Report;

/// Distances of marks, in milliseconds.
const STEPS: [u64; 22] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    604_800_000,
];
/// So many distances at most.
const MARKS: u32 = 5;
/// A time so far to the right stands left of its mark.
pub(super) const LAST: f64 = 0.9;
/// A forecast that was wrong by more does not make the drains themselves small.
const FORECAST: u32 = 2;

/// The axis, by the wall clock.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) begin: Time,
    /// Until the last drain ended.
    pub(super) took: Duration,
    /// What is shown.
    length: Duration,
}

impl Axis {
    pub(super) fn of(reports: &[Report]) -> Self {
        let begin = reports.iter().map(|report| report.wall(report.history.started));
        let begin = begin.min().unwrap_or_default();
        let after = |report: &Report, at: Time| report.wall(at).since(begin);
        let ends = reports.iter().map(|report| after(report, report.history.ended));
        let took = ends.max().unwrap_or_default();
        let forecasts = reports.iter().filter_map(|report| {
            let estimate = report.recording.estimate?;
            Some(after(report, estimate.late))
        });
        let least = Duration::from_millis(1);
        let forecast = forecasts.max().unwrap_or_default().min(took * FORECAST);
        Self {
            begin,
            took,
            length: took.max(forecast).max(least),
        }
    }

    /// Where a moment of this drain is, from 0 to 1.
    pub(super) fn place(&self, report: &Report, at: Time) -> f64 {
        self.part(report.wall(at).since(self.begin)).min(1.0)
    }

    /// Where a time of this drain begins, and how wide it is, in percent.
    pub(super) fn span(&self, report: &Report, (from, to): (Time, Time)) -> (f64, f64) {
        let [left, right] = [from, to].map(|at| self.place(report, at) * 100.0);
        (left, right - left)
    }

    fn part(&self, after: Duration) -> f64 {
        after.as_secs_f64() / self.length.as_secs_f64()
    }

    /// Places with their times.
    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        let fits = |step: &Duration| self.length <= *step * MARKS;
        let mut steps = STEPS.into_iter().map(Duration::from_millis);
        let longest = self.length / MARKS;
        let step = steps.find(fits).unwrap_or(longest);
        let marks = (0..=MARKS).map(|number| step * number);
        let shown = marks.take_while(|after| *after <= self.length);
        shown.map(|after| (self.part(after), words(after))).collect()
    }
}

/// `10m`, where everything is a multiple of it.
fn words(after: Duration) -> String {
    let text = HumanDuration(after).to_string();
    let short = text.strip_suffix("00s").or_else(|| text.strip_suffix("00m"));
    short.map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(seconds: f64) -> String {
        let length = Duration::from_secs_f64(seconds);
        let axis = Axis {
            begin: Time::default(),
            took: length,
            length,
        };
        let marks = axis.marks();
        assert!(
            marks.iter().all(|(place, _)| (0.0..=1.0).contains(place)),
            "{marks:?}"
        );
        let texts: Vec<_> = marks.into_iter().map(|(_, text)| text).collect();
        texts.join(" ")
    }

    #[test]
    fn an_axis_has_round_marks() {
        assert_eq!(marks(0.4), "0s 0.1s 0.2s 0.3s 0.4s");
        assert_eq!(marks(13.0), "0s 5s 10s");
        assert_eq!(marks(100.0), "0s 30s 1m 1m30s");
        assert_eq!(marks(1_860.0), "0s 10m 20m 30m");
        assert_eq!(marks(36_000.0), "0s 2h 4h 6h 8h 10h");
        assert_eq!(marks(0.001), "0s");
    }
}
