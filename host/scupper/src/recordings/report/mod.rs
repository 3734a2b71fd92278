//! `scupper report`: what a recorded drain waited for, as text, as JSON or as a page.

mod causes;
mod html;
mod savings;
mod text;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

pub(crate) use self::causes::{Total, last_of_drain as last_wait, of_drain as waits_of};
pub(crate) use self::text::few;
use super::args::ReportArgs;
use crate::exit::Exit;
use crate::output::{Output, fail, inform, print};
use scupper_common::clock::rfc3339;
use scupper_common::text::one_line;
use scupper_engine::HumanDuration;
use scupper_forecast::Saving;
use scupper_recording::{Difference, DrainHistory, PodHistory, ReadError, Recording};
use scupper_report::Format;

/// Bytes of a foreign text.
const TEXT: usize = 300;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}: this program's engine does something else than Scupper {program} has recorded; use that version. It is in {difference}", .path.display())]
    Differs {
        path: PathBuf,
        program: String,
        difference: Box<Difference>,
    },
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl ReportError {
    const fn exit(&self) -> Exit {
        match self {
            Self::Read(_) | Self::Write { .. } => Exit::Config,
            Self::Differs { .. } => Exit::Found,
        }
    }
}

/// A recorded drain and what it did.
struct Report {
    recording: Recording,
    history: DrainHistory,
    totals: Vec<Total>,
    /// What would have made it shorter.
    savings: Vec<Saving>,
}

pub(crate) fn run(args: &ReportArgs, output: Output) -> ExitCode {
    match report(args, output) {
        Ok(()) => Exit::Done.into(),
        Err(error) => fail(&error, error.exit()),
    }
}

fn report(args: &ReportArgs, output: Output) -> Result<(), ReportError> {
    let report = Report::of(&args.file)?;
    if let Some(path) = &args.html {
        fs::write(path, html::page(&report)).map_err(|source| ReportError::Write {
            path: path.clone(),
            source,
        })?;
        inform(&format!("{} is written", path.display()));
        return Ok(());
    }
    print(&match output.format() {
        Format::Human => text::markdown(&report),
        Format::Json => output.document(&report.document()),
    });
    Ok(())
}

impl Report {
    fn of(path: &Path) -> Result<Self, ReportError> {
        let recording = Recording::read(path)?;
        let history = DrainHistory::of(&recording).map_err(|difference| ReportError::Differs {
            path: path.to_owned(),
            program: one_line(&recording.header.program, TEXT),
            difference,
        })?;
        let totals = causes::of_drain(&history);
        Ok(Self {
            savings: scupper_forecast::savings(&recording, &history),
            recording,
            history,
            totals,
        })
    }

    /// There is something to say about what it waited for.
    fn took_long(&self) -> bool {
        self.totals
            .first()
            .is_some_and(|longest| longest.took >= text::SHOWN)
    }

    /// `Drain of worker-1: Drained after 9s`
    fn title(&self) -> String {
        let node = one_line(&self.recording.header.request.node, TEXT);
        let took = HumanDuration(self.history.ended.since(self.history.started));
        let end = match &self.recording.end {
            Some(end) => format!("{} after {took}", one_line(&end.outcome, TEXT)),
            None => format!("recorded for {took}, without its end"),
        };
        let what = match self.recording.header.request.intent {
            scupper_engine::Intent::Drain => "Drain",
            scupper_engine::Intent::Uncordon => "Uncordon",
        };
        format!("{what} of {node}: {end}")
    }

    /// When it began, who asked for it, and how it ended.
    fn introduction(&self) -> String {
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

    /// What shadow policies would have made of it, a sentence each.
    fn shadows(&self) -> impl Iterator<Item = String> {
        let shadows = self.recording.shadows.iter();
        shadows.map(|shadow| {
            let text = shadow.to_string();
            let (first, rest) = text.split_at_checked(1).unwrap_or(("", &text));
            format!("{}{rest}.", first.to_uppercase())
        })
    }

    /// What would have made it shorter; `None`: nothing that is worth it.
    fn advice(&self) -> Option<String> {
        savings::sentence(&self.savings, self.history.ended.since(self.history.started))
    }

    /// Seconds after the start.
    fn after(&self, at: scupper_engine::Time) -> HumanDuration {
        HumanDuration(at.since(self.history.started))
    }

    fn document(&self) -> Value {
        let header = &self.recording.header;
        let seconds = |total: &Total| json!({"kind": total.kind.name(), "cause": total.cause, "seconds": total.took.as_secs_f64()});
        let pod = |pod: &PodHistory| {
            json!({
                "pod": pod.pod.to_string(),
                "owner": pod.owner,
                "wave": pod.wave,
                "goneAfterSeconds": pod.gone.map(|gone| gone.since(self.history.started).as_secs_f64()),
                "waits": causes::of_pod(pod).iter().map(seconds).collect::<Vec<_>>(),
            })
        };
        let saving = |saving: &Saving| {
            let (kind, name) = savings::names(&saving.change);
            json!({"kind": kind, "name": name, "seconds": saving.saves.as_secs_f64()})
        };
        let end = self.recording.end.as_ref();
        json!({
            "node": header.request.node,
            "drain": header.request.name,
            "started": rfc3339(header.wall),
            "outcome": end.map(|end| &end.outcome),
            "message": end.map(|end| &end.text),
            "seconds": self.history.ended.since(self.history.started).as_secs_f64(),
            "waitedFor": self.totals.iter().map(seconds).collect::<Vec<_>>(),
            "shadows": self.recording.shadows,
            "savings": self.savings.iter().map(saving).collect::<Vec<_>>(),
            "pods": self.history.pods.iter().map(pod).collect::<Vec<_>>(),
        })
    }
}
