//! `scupper drains`: the recordings of a directory, which is the driver's when it runs in the driver's container.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::args::{DrainsArgs, DrainsCommand, GetArgs};
use crate::exit::Exit;
use crate::output::{Output, complain, fail, inform, print};
use scupper_common::clock::rfc3339;
use scupper_common::text::one_line;
use scupper_engine::HumanDuration;
use scupper_recording::{Entry, ListError};
use scupper_report::Format;

const HEADER: [&str; 6] = ["STARTED", "NODE", "TRIGGER", "TOOK", "END", "NAME"];

/// Bytes of a foreign text in a cell.
const CELL: usize = 200;

/// Why recordings are not shown.
#[derive(Debug, thiserror::Error)]
enum DrainsError {
    #[error("which recordings? pass --recordings DIR, or the driver's --state-dir")]
    Where,
    #[error(transparent)]
    List(#[from] ListError),
    #[error("{0} of the recordings cannot be read")]
    Unreadable(usize),
    #[error("there is no recording {0}; scupper drains lists them")]
    None(String),
    #[error("a recording is compressed: send it to a file, with `>FILE`")]
    Terminal,
    #[error("cannot copy {}", .path.display())]
    Copy { path: PathBuf, source: io::Error },
}

impl DrainsError {
    const fn exit(&self) -> Exit {
        match self {
            Self::Where | Self::None(_) | Self::Terminal => Exit::Usage,
            Self::List(_) | Self::Unreadable(_) | Self::Copy { .. } => Exit::Config,
        }
    }
}

/// Lists recordings, or writes one.
pub(crate) fn run(args: &DrainsArgs, output: Output) -> ExitCode {
    let done = match &args.command {
        Some(DrainsCommand::Get(get)) => copy(get),
        None => list(args, output),
    };
    match done {
        Ok(()) => Exit::Done.into(),
        Err(error) => fail(&error, error.exit()),
    }
}

fn list(args: &DrainsArgs, output: Output) -> Result<(), DrainsError> {
    let directory = args.place.directory().ok_or(DrainsError::Where)?;
    let (mut entries, unreadable) = directory.list()?;
    entries.retain(|entry| {
        let node = args.node.as_ref();
        node.is_none_or(|node| *node == entry.header.request.node)
    });
    match output.format() {
        Format::Json => {
            print(&output.document(&json!({ "drains": entries.iter().map(document).collect::<Vec<_>>() })))
        }
        Format::Human if entries.is_empty() => {
            let of = args
                .node
                .as_ref()
                .map_or_else(String::new, |node| format!(" of {}", one_line(node, CELL)));
            inform(&format!(
                "no drain{of} is recorded in {}",
                directory.path().display()
            ));
        }
        Format::Human => print(&table(&entries)),
    }
    for error in &unreadable {
        complain(&scupper_driver::chain(error));
    }
    match unreadable.len() {
        0 => Ok(()),
        some => Err(DrainsError::Unreadable(some)),
    }
}

fn document(entry: &Entry) -> Value {
    let request = &entry.header.request;
    let end = entry.end.as_ref();
    json!({
        "name": entry.name,
        "file": entry.path.to_string_lossy(),
        "node": request.node,
        "drain": request.name,
        "intent": request.intent.name(),
        "trigger": request.trigger,
        "started": rfc3339(entry.header.wall),
        "outcome": end.map(|end| &end.outcome),
        "message": end.map(|end| &end.text),
        "seconds": end.map(|end| end.at.since(entry.header.at).as_secs_f64()),
    })
}

fn table(entries: &[Entry]) -> String {
    let rows: Vec<_> = std::iter::once(HEADER.map(str::to_owned))
        .chain(entries.iter().map(row))
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..HEADER.len()).map(width).collect();
    let line = |row: &[String; HEADER.len()]| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(entry: &Entry) -> [String; HEADER.len()] {
    let end = entry.end.as_ref();
    let took = end.map(|end| HumanDuration(end.at.since(entry.header.at)).to_string());
    [
        rfc3339(entry.header.wall),
        one_line(&entry.header.request.node, CELL),
        one_line(&entry.header.request.trigger, CELL),
        took.unwrap_or_else(|| "-".to_owned()),
        end.map_or_else(|| "not recorded".to_owned(), |end| one_line(&end.outcome, CELL)),
        one_line(&entry.name, CELL),
    ]
}

fn copy(get: &GetArgs) -> Result<(), DrainsError> {
    let directory = get.place.directory().ok_or(DrainsError::Where)?;
    let path = directory
        .find(&get.name)?
        .ok_or_else(|| DrainsError::None(get.name.clone()))?;
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        return Err(DrainsError::Terminal);
    }
    File::open(&path)
        .and_then(|mut file| io::copy(&mut file, &mut stdout))
        .map(|_| ())
        .map_err(|source| DrainsError::Copy { path, source })
}
