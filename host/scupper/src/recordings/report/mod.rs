//! `scupper report`: which recordings it is of, and where it goes.

mod sources;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::sources::SourceError;
use super::args::ReportArgs;
use crate::exit::Exit;
use crate::output::{Output, fail, inform, print};
use scupper_drain_report::Reports;
use scupper_report::Format;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Drain(#[from] scupper_drain_report::ReportError),
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl ReportError {
    const fn exit(&self) -> Exit {
        use scupper_drain_report::ReportError as DrainError;
        match self {
            Self::Source(SourceError::Where { .. } | SourceError::None { .. }) => Exit::Usage,
            Self::Source(_) | Self::Drain(DrainError::Read(_)) | Self::Write { .. } => Exit::Config,
            Self::Drain(DrainError::Differs { .. }) => Exit::Found,
        }
    }
}

pub(crate) fn run(args: &ReportArgs, output: Output) -> ExitCode {
    match report(args, output) {
        Ok(()) => Exit::Done.into(),
        Err(error) => fail(&error, error.exit()),
    }
}

fn report(args: &ReportArgs, output: Output) -> Result<(), ReportError> {
    let files = sources::files(&args.drains, args.place.directory().as_ref())?;
    let reports = Reports::of(&files)?;
    if let Some(path) = &args.html {
        write(path, &reports.page())?;
    }
    if let Some(path) = &args.svg {
        write(path, &reports.picture())?;
    }
    if args.html.is_some() || args.svg.is_some() {
        return Ok(());
    }
    match output.format() {
        Format::Human => print(&reports.markdown(output.pod_list())),
        Format::Json => reports
            .documents()
            .for_each(|document| print(&output.document(&document))),
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
