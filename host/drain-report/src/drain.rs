//! One drain of a report, and what is said of it in words.

use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_common::clock::rfc3339;
use scupper_common::text::one_line;
use scupper_engine::{HumanDuration, Intent, Outcome, Time};
use scupper_forecast::Saving;
use scupper_recording::{DrainHistory, Recording, StartEstimate};

use super::causes::{self, Total};
use super::{ReportError, TEXT, savings, text};

/// A recorded drain and what it did.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) file: PathBuf,
    pub(super) recording: Recording,
    pub(super) history: DrainHistory,
    pub(super) totals: Vec<Total>,
    /// What would have made it shorter.
    pub(super) savings: Vec<Saving>,
}

impl Report {
    pub(super) fn of(path: &Path) -> Result<Self, ReportError> {
        let recording = Recording::read(path)?;
        let history = DrainHistory::of(&recording).map_err(|difference| ReportError::Differs {
            path: path.to_owned(),
            program: one_line(&recording.header.program, TEXT),
            difference,
        })?;
        let totals = causes::of_drain(&history);
        Ok(Self {
            file: path.to_owned(),
            savings: scupper_forecast::savings(&recording, &history),
            recording,
            history,
            totals,
        })
    }

    pub(super) fn took(&self) -> Duration {
        self.history.ended.since(self.history.started)
    }

    /// A moment of this drain by the wall clock, which several drains share.
    pub(super) fn wall(&self, at: Time) -> Time {
        self.recording.header.wall + at.since(self.history.started)
    }

    /// Time after the start.
    pub(super) fn after(&self, at: Time) -> HumanDuration {
        HumanDuration(at.since(self.history.started))
    }

    /// There is something to say about what it waited for.
    pub(super) fn took_long(&self) -> bool {
        self.totals
            .first()
            .is_some_and(|longest| longest.took >= text::SHOWN)
    }

    pub(super) fn node(&self) -> String {
        one_line(&self.recording.header.request.node, TEXT)
    }

    /// `Drain of worker-1: Drained after 9s`
    pub(super) fn title(&self) -> String {
        let what = match self.recording.header.request.intent {
            Intent::Drain => "Drain",
            Intent::Uncordon => "Uncordon",
        };
        format!("{what} of {}: {}", self.node(), self.end())
    }

    /// `Drained after 9s`
    pub(super) fn end(&self) -> String {
        let took = HumanDuration(self.took());
        match &self.recording.end {
            Some(end) => format!("{} after {took}", one_line(&end.outcome, TEXT)),
            None => format!("recorded for {took}, without its end"),
        }
    }

    /// When it began, who asked for it, and how it ended.
    pub(super) fn introduction(&self) -> String {
        let header = &self.recording.header;
        let (by, name) = (&header.request.trigger, &header.request.name);
        let by = one_line(&format!("{by} {name}"), TEXT);
        let mut text = format!("Begun {} for {by}", rfc3339(header.wall));
        if header.checkpoint.is_some() {
            text.push_str(", as the continuation of an earlier process's drain");
        }
        text.push('.');
        if let Some(end) = &self.recording.end {
            let end = one_line(&end.text, TEXT);
            text.push_str(&format!(" The end: {end}."));
        }
        text
    }

    /// The forecast made at the start, and what came; `None`: too little was known then.
    pub(super) fn forecast(&self) -> Option<String> {
        let estimate = self.recording.estimate?;
        let [early, likely, late] = [estimate.early, estimate.likely, estimate.late].map(|at| self.after(at));
        let came = self.came(&estimate);
        Some(format!(
            "Forecast at the start: {likely}, in eight of ten cases {early} to {late}. {came}."
        ))
    }

    fn came(&self, estimate: &StartEstimate) -> String {
        let took = HumanDuration(self.took());
        let Some(end) = &self.recording.end else {
            return format!("The recording stops after {took}");
        };
        if end.outcome != Outcome::Drained.name() {
            return format!("It ended as {}", self.end());
        }
        let came = match self.history.ended {
            ended if ended < estimate.early => "less than that",
            ended if ended > estimate.late => "more than that",
            _ => "within that range",
        };
        format!("It took {took}, {came}")
    }

    /// What shadow policies would have made of it, a sentence each.
    pub(super) fn shadows(&self) -> impl Iterator<Item = String> {
        let shadows = self.recording.shadows.iter();
        shadows.map(|shadow| {
            let text = shadow.to_string();
            let (first, rest) = text.split_at_checked(1).unwrap_or(("", &text));
            format!("{}{rest}.", first.to_uppercase())
        })
    }

    /// What would have made it shorter; `None`: nothing that is worth it.
    pub(super) fn advice(&self) -> Option<String> {
        savings::sentence(&self.savings, self.took())
    }
}
