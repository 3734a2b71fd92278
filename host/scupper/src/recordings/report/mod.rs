//! `scupper report`: what recorded drains waited for, as text, as JSON, as a page or as a picture.

mod axis;
mod causes;
mod document;
mod drain;
mod html;
mod overview;
mod savings;
mod sources;
mod svg;
mod text;
mod theme;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::axis::Axis;
pub(crate) use self::causes::{Total, last_of_drain as last_wait, of_drain as waits_of};
use self::drain::Report;
use self::sources::SourceError;
pub(crate) use self::text::few;
use super::args::ReportArgs;
use crate::exit::Exit;
use crate::output::{Output, fail, inform, print};
use scupper_recording::{Difference, ReadError};
use scupper_report::Format;

/// Bytes of a foreign text.
const TEXT: usize = 300;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error(transparent)]
    Source(#[from] SourceError),
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
            Self::Source(SourceError::Where { .. } | SourceError::None { .. }) => Exit::Usage,
            Self::Source(_) | Self::Read(_) | Self::Write { .. } => Exit::Config,
            Self::Differs { .. } => Exit::Found,
        }
    }
}

/// The drains of a report, in the order in which they were named.
struct Reports {
    drains: Vec<Report>,
    axis: Axis,
}

pub(crate) fn run(args: &ReportArgs, output: Output) -> ExitCode {
    match report(args, output) {
        Ok(()) => Exit::Done.into(),
        Err(error) => fail(&error, error.exit()),
    }
}

fn report(args: &ReportArgs, output: Output) -> Result<(), ReportError> {
    let files = sources::files(&args.drains, args.place.directory().as_ref())?;
    let drains = files.iter().map(|file| Report::of(file));
    let drains = drains.collect::<Result<Vec<_>, _>>()?;
    let reports = Reports {
        axis: Axis::of(&drains),
        drains,
    };
    if let Some(path) = &args.html {
        write(path, &html::page(&reports))?;
    }
    if let Some(path) = &args.svg {
        write(path, &svg::chart(&reports))?;
    }
    if args.html.is_some() || args.svg.is_some() {
        return Ok(());
    }
    match output.format() {
        Format::Human => print(&text::markdown(&reports, output.pod_list())),
        Format::Json => {
            let documents = reports.drains.iter().map(document::of);
            documents.for_each(|document| print(&output.document(&document)));
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), ReportError> {
    fs::write(path, text).map_err(|source| ReportError::Write {
        path: path.to_owned(),
        source,
    })?;
    inform(&format!("{} is written", path.display()));
    Ok(())
}

#[cfg(test)]
mod tests;
