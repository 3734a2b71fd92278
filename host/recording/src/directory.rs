//! A directory of recordings. A driver's is bounded in number, size and age: the oldest go. A person's is not touched.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use scupper_common::clock::rfc3339;
use scupper_engine::Time;

use crate::read::{ReadError, Recording};
use scupper_recorder::{End, Header, Recorder, create};

/// How a recording's name ends.
const ENDING: &str = ".jsonl.gz";
/// A recording of a drain takes at most this part of what all may take.
const PART: u64 = 4;
/// The most characters of a drain's name in a file's name, which may have 255 bytes.
const LONGEST_NAME: usize = 80;

/// How much a driver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most recordings.
    pub number: usize,
    /// The most bytes of all together.
    pub bytes: u64,
    /// The greatest age.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            number: 200,
            bytes: 64 << 20,
            age: Duration::from_secs(30 * 24 * 3600),
        }
    }
}

/// A directory of recordings.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    /// What is kept; `None`: all.
    limits: Option<Limits>,
    /// Those that this process is writing.
    open: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// Where the recordings of a process go.
#[derive(Clone, Debug, Default)]
pub enum RecordingTarget {
    /// Nothing is recorded.
    #[default]
    Nowhere,
    /// The one drain of the process goes to this new file.
    File(PathBuf),
    /// Each drain has its file there.
    Directory(Directory),
}

impl RecordingTarget {
    /// Where a person wants them: in this directory if it is one, and otherwise in this file.
    pub fn of_person(path: PathBuf) -> Self {
        let is_directory = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
        match is_directory {
            true => Self::Directory(Directory::new(path, None)),
            false => Self::File(path),
        }
    }

    /// The directory, if it is one.
    pub const fn directory(&self) -> Option<&Directory> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Nowhere | Self::File(_) => None,
        }
    }

    /// Begins to record a drain. If that is not possible, it says why and records nothing.
    pub fn begin(&self, header: impl FnOnce() -> Header) -> Recorder {
        let begun = match self {
            Self::Nowhere => return Recorder::default(),
            Self::File(path) => {
                let file = path.clone();
                Recorder::begin(move || create(&file), path.clone(), u64::MAX, header(), || ())
            }
            Self::Directory(directory) => directory.begin(header()),
        };
        begun.unwrap_or_else(|error| {
            tracing::warn!("this drain is not recorded: {error}");
            Recorder::default()
        })
    }
}

/// A recording of a directory.
#[derive(Debug)]
pub struct Entry {
    /// The file.
    pub path: PathBuf,
    /// Its name in this directory, without the ending.
    pub name: String,
    /// How the drain began.
    pub header: Header,
    /// How it ended; `None`: it runs, or its process was killed.
    pub end: Option<End>,
}

/// Why recordings cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error("cannot list {}", .path.display())]
pub struct ListError {
    /// The directory.
    path: PathBuf,
    /// Why.
    source: io::Error,
}

impl Directory {
    /// This one, which is made when it is needed.
    pub fn new(path: PathBuf, limits: Option<Limits>) -> Self {
        Self {
            path,
            limits,
            open: Arc::default(),
        }
    }

    /// The files of all recordings, by name.
    pub fn files(&self) -> Result<Vec<PathBuf>, ListError> {
        let found = files(&self.path).map_err(|source| ListError {
            path: self.path.clone(),
            source,
        });
        let mut found = found?;
        found.sort();
        Ok(found)
    }

    /// The files of the newest recordings, at most so many, without those that have more bytes or that this process is
    /// writing. No file is opened.
    pub fn newest(&self, number: usize, bytes: u64) -> Result<Vec<PathBuf>, ListError> {
        let open = self.open().clone();
        let found = self.files()?.into_iter().filter(|path| !open.contains(path));
        let mut found: Vec<_> = found
            .filter_map(|path| {
                let metadata = fs::metadata(&path).ok()?;
                (metadata.len() <= bytes).then_some((metadata.modified().ok()?, path))
            })
            .collect();
        found.sort();
        let rest = found.len().saturating_sub(number);
        Ok(found.split_off(rest).into_iter().map(|(_, path)| path).collect())
    }

    /// All recordings, the oldest first, and what is wrong with those that cannot be read.
    pub fn list(&self) -> Result<(Vec<Entry>, Vec<ReadError>), ListError> {
        let (mut entries, mut unreadable) = (Vec::new(), Vec::new());
        for path in self.files()? {
            match Recording::ends(&path) {
                Ok((header, end)) => entries.push(Entry {
                    name: stem(&path),
                    path,
                    header,
                    end,
                }),
                Err(error) => unreadable.push(error),
            }
        }
        entries.sort_by_key(|entry| entry.header.wall);
        Ok((entries, unreadable))
    }

    /// The file of the recording with this name.
    pub fn find(&self, name: &str) -> Result<Option<PathBuf>, ListError> {
        Ok(self.files()?.into_iter().find(|path| stem(path) == name))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All that touches the disk is done by the recording's thread.
    fn begin(&self, header: Header) -> io::Result<Recorder> {
        let path = self.path.join(file_name(&header));
        let most = self.limits.map_or(u64::MAX, |limits| limits.bytes / PART);
        let (wall, node) = (header.wall, header.request.node.clone());
        self.open().insert(path.clone());
        let (opened, opening, of) = (self.clone(), path.clone(), node.clone());
        let open = move || {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&opened.path)?;
            opened.prune(wall, &of);
            create(&opening)
        };
        let (closed, closing) = (self.clone(), path.clone());
        let ended = move || {
            closed.open().remove(&closing);
            closed.prune(wall, &node);
        };
        let begun = Recorder::begin(open, path.clone(), most, header, ended);
        if begun.is_err() {
            self.open().remove(&path);
        }
        begun
    }

    fn open(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes the oldest of this node until the rest is within the limits. Other files of the directory are not touched.
    fn prune(&self, now: Time, node: &str) {
        let Some(limits) = self.limits else {
            return;
        };
        let open = self.open().clone();
        let closed = files(&self.path).unwrap_or_default().into_iter();
        let mut kept: Vec<_> = closed
            .filter(|path| !open.contains(path) && is_of(&stem(path), node))
            .filter_map(|path| {
                let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
                let changed = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
                // Of those that ended in one tick of the file system's clock, the one that began first is the oldest.
                Some((Time::from_millis(0) + changed, path, meta.len()))
            })
            .collect();
        kept.sort();
        let (mut number, mut bytes) = (kept.len(), kept.iter().map(|(_, _, bytes)| bytes).sum::<u64>());
        for (changed, path, size) in &kept {
            let is_old = now.since(*changed) > limits.age;
            if !is_old && number <= limits.number && bytes <= limits.bytes {
                return;
            }
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!("cannot delete the old recording {}: {error}", path.display());
                continue;
            }
            number -= 1;
            bytes = bytes.saturating_sub(*size);
        }
    }
}

/// The recordings of a directory, in no order. One that does not exist has none.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths
        .filter(|path| {
            path.as_ref()
                .is_ok_and(|path| path.to_string_lossy().ends_with(ENDING))
                || path.is_err()
        })
        .collect()
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(ENDING).unwrap_or(&name).to_owned()
}

/// `worker-1.20261126T131415123Z.drain-worker-1.jsonl.gz`: of one node, by time, whatever the drain is called.
fn file_name(header: &Header) -> String {
    let start: String = rfc3339(header.wall)
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric())
        .collect();
    let (node, name) = (&header.request.node, &header.request.name);
    format!("{}.{start}.{}{ENDING}", plain(node), plain(name))
}

/// Whether a name without its ending is that of a recording of this node.
fn is_of(stem: &str, node: &str) -> bool {
    let rest = stem
        .strip_prefix(&plain(node))
        .and_then(|rest| rest.strip_prefix('.'));
    rest.and_then(|rest| rest.split_once('.'))
        .is_some_and(|(start, _)| {
            let digits = start.chars().filter(char::is_ascii_digit).count();
            digits >= 14 && start.ends_with('Z') && start.len() == digits + 2
        })
}

fn plain(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter,
        '.' | '_' => letter,
        _ => '-',
    });
    letters.take(LONGEST_NAME).collect()
}
