//! The thread of a recording: it makes the file, and writes the lines that wait for it. No drain waits for a disk.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::gzip::Gzip;
use crate::line::{LONGEST, Line};

/// What comes within this time is written together; a process that is killed loses at most that.
const TOGETHER: Duration = Duration::from_secs(1);
/// So many bytes are written sooner.
const ENOUGH: usize = 64 << 10;
/// So many bytes may wait for the disk, or one line.
pub(crate) const MOST_WAITING: usize = 4 << 20;
/// A recording has at most so many bytes before compression.
const MOST_PLAIN: u64 = 512 << 20;

/// Lines that wait for the thread.
#[derive(Debug)]
pub(crate) struct Waiting {
    path: PathBuf,
    lines: Mutex<Lines>,
    /// There are some, or no more will come.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
    /// The bytes of a line that is longer than what else may wait.
    long: usize,
    /// No more will come, or none will be written.
    is_closed: bool,
    /// Why the recording ends before its drain.
    cut: Option<String>,
}

impl Waiting {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            lines: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// `false`: no more is recorded, and the log says why.
    pub(crate) fn add(&self, line: &[&[u8]]) -> bool {
        self.add_to(&mut self.lock(), line)
    }

    /// No line comes after this one, from whatever thread.
    pub(crate) fn add_last(&self, line: &[&[u8]]) {
        let mut lines = self.lock();
        self.add_to(&mut lines, line);
        lines.is_closed = true;
        self.changed.notify_one();
    }

    fn add_to(&self, lines: &mut Lines, line: &[&[u8]]) -> bool {
        if lines.is_closed {
            return false;
        }
        let before = lines.text.len();
        let more: usize = line.iter().map(|part| part.len()).sum();
        let is_long = before == 0 && more > MOST_WAITING;
        let most = if is_long {
            LONGEST
        } else {
            lines.long + MOST_WAITING
        };
        if before + more > most {
            let why =
                format!("a line of {more} bytes, and {before} bytes that wait for the disk, are too much");
            self.cut(lines, why);
            return false;
        }
        if is_long {
            lines.long = more;
        }
        for part in line {
            lines.text.extend_from_slice(part);
        }
        if before == 0 || (before < ENOUGH && before + more >= ENOUGH) {
            self.changed.notify_one();
        }
        true
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().text.is_empty()
    }

    /// Lines are still written.
    pub(crate) fn is_open(&self) -> bool {
        !self.lock().is_closed
    }

    fn cut(&self, lines: &mut Lines, why: String) {
        tracing::warn!("{}: the recording ends here: {why}", self.path.display());
        lines.is_closed = true;
        lines.cut = Some(why);
        self.changed.notify_one();
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for lines, and then for what follows within this time; `None`: no more will come.
    fn take(&self, within: Duration) -> Option<Vec<u8>> {
        let is_idle = |lines: &mut Lines| lines.text.is_empty() && !lines.is_closed;
        let lines = self.changed.wait_while(self.lock(), is_idle);
        let lines = lines.unwrap_or_else(PoisonError::into_inner);
        let more = |lines: &mut Lines| lines.text.len() < ENOUGH && !lines.is_closed;
        let more = self.changed.wait_timeout_while(lines, within, more);
        let (mut lines, _) = more.unwrap_or_else(PoisonError::into_inner);
        let text = std::mem::take(&mut lines.text);
        lines.long = 0;
        (!text.is_empty()).then_some(text)
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that knows how long it is.
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What the thread does.
pub(crate) fn write(waiting: Arc<Waiting>, most: u64, open: impl FnOnce() -> io::Result<File>) {
    let written = open()
        .map_err(|error| ("this drain is not recorded", error))
        .and_then(|file| {
            let written = Gzip::begin(Counted { file, bytes: 0 });
            let written = written.and_then(|gzip| write_all(&waiting, most, gzip));
            written.map_err(|error| ("the recording ends here", error))
        });
    waiting.close();
    if let Err((what, error)) = written {
        tracing::warn!("{}: {what}: {error}", waiting.path.display());
    }
}

/// Until the drain has ended, or the file is full.
fn write_all(waiting: &Waiting, most: u64, mut gzip: Gzip<Counted>) -> io::Result<()> {
    // Who the drain is of is on the disk at once.
    let (mut within, mut plain) = (Duration::ZERO, 0);
    while let Some(lines) = waiting.take(within) {
        within = TOGETHER;
        gzip.write_all(&lines)?;
        gzip.flush()?;
        plain += lines.len() as u64;
        if gzip.get_ref().bytes > most || plain > MOST_PLAIN {
            let why = match plain > MOST_PLAIN {
                true => format!("it is larger than {MOST_PLAIN} bytes before compression"),
                false => format!("it is larger than {most} bytes"),
            };
            let mut lines = waiting.lock();
            // Else no more will come: what waits is little, and has the end of the drain if that is not written yet.
            if !lines.is_closed {
                waiting.cut(&mut lines, why);
                break;
            }
        }
    }
    let cut = waiting.lock().cut.take();
    if let Some(why) = cut {
        let line = serde_json::to_string(&Line::Cut(why))?;
        writeln!(gzip, "{line}")?;
    }
    gzip.finish()
}

/// Makes the file, which must not exist.
pub fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
