//! Which recordings a report is of: files, names of recordings, and nodes, whose newest drain is taken from a directory.

use std::io;
use std::path::{Path, PathBuf};

use scupper_common::text::one_line;
use scupper_engine::Intent;
use scupper_recording::{Directory, Entry, ListError};

use crate::output::warn;

/// Bytes of a foreign text.
const TEXT: usize = 300;

/// Why a recording is not found.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error(
        "there is no file {what}, and where recordings of nodes are is not known: pass --recordings DIR, or the driver's --state-dir"
    )]
    Where { what: String },
    #[error("there is no file {what}, and {} has no recording of this name and no recorded drain of a node of this name; scupper drains lists what it has", .directory.display())]
    None { what: String, directory: PathBuf },
    #[error("cannot open {}", .path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error(transparent)]
    List(#[from] ListError),
}

/// The files of all that was typed, in the same order.
pub(super) fn files(typed: &[PathBuf], directory: Option<&Directory>) -> Result<Vec<PathBuf>, SourceError> {
    let mut drains = None;
    let mut files = Vec::new();
    for what in typed {
        if is_file(what)? {
            files.push(what.clone());
            continue;
        }
        let name = one_line(&what.to_string_lossy(), TEXT);
        let Some(directory) = directory else {
            return Err(SourceError::Where { what: name });
        };
        // Read once, whatever the number of nodes.
        let drains = match &drains {
            Some(drains) => drains,
            None => drains.insert(newest_last(directory)?),
        };
        let is_it = |entry: &&Entry| {
            [&entry.header.request.node, &entry.name]
                .map(Path::new)
                .contains(&what.as_path())
        };
        let newest = drains.iter().rfind(is_it).ok_or_else(|| SourceError::None {
            what: name,
            directory: directory.path().to_owned(),
        })?;
        files.push(newest.path.clone());
    }
    Ok(files)
}

/// A path with a slash is not the name of a node.
fn is_file(what: &Path) -> Result<bool, SourceError> {
    let is_path = what.as_os_str().as_encoded_bytes().contains(&b'/');
    match what.metadata() {
        Ok(metadata) => Ok(metadata.is_file() || is_path),
        Err(source) if is_path => Err(SourceError::Open {
            path: what.to_owned(),
            source,
        }),
        Err(_) => Ok(false),
    }
}

fn newest_last(directory: &Directory) -> Result<Vec<Entry>, SourceError> {
    let (mut entries, unreadable) = directory.list()?;
    for error in unreadable {
        warn(&format!("not searched: {}", scupper_driver::chain(&error)));
    }
    entries.retain(|entry| entry.header.request.intent == Intent::Drain);
    Ok(entries)
}
