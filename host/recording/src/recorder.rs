//! Takes inputs and commands from a running drain. A thread writes them, because no drain waits for a disk.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use scupper_engine::{Command, Event, Time, ToUndo};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::facts::FactLog;
use crate::line::{End, Header, Input, Line, RecordedPolicy};

/// What comes within this time is written together; a process that is killed loses at most that.
const TOGETHER: Duration = Duration::from_secs(1);
/// So many bytes are written sooner.
const ENOUGH: usize = 256 << 10;
/// So many bytes may wait for the disk.
const MOST_WAITING: usize = 4 << 20;
/// How long the end of a drain waits for the disk.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// Records one drain. Whatever goes wrong is logged once, and the drain goes on without.
#[derive(Debug, Default)]
pub struct Recorder {
    thread: Option<Thread>,
    /// The turn so far, as the contents of two JSON arrays.
    inputs: Vec<u8>,
    commands: Vec<u8>,
}

#[derive(Debug)]
struct Thread {
    path: PathBuf,
    waiting: Arc<Waiting>,
    /// Closed when all is written.
    written: oneshot::Receiver<()>,
}

impl Recorder {
    /// Records in this new file, of at most so many bytes; `ended` is called when no more is written to it.
    pub(crate) fn begin(
        file: File,
        path: PathBuf,
        most: u64,
        header: Header,
        ended: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let waiting = Arc::new(Waiting::default());
        let (done, written) = oneshot::channel();
        let writer = Writer {
            path: path.clone(),
            encoder: GzEncoder::new(Counted { file, bytes: 0 }, Compression::fast()),
            most,
            waiting: Arc::clone(&waiting),
        };
        std::thread::Builder::new()
            .name("recording".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
                writer.run();
                ended();
                drop(done);
            })?;
        let mut recorder = Self {
            thread: Some(Thread {
                path,
                waiting,
                written,
            }),
            ..Self::default()
        };
        recorder.write(&Line::Header(Box::new(header)));
        Ok(recorder)
    }

    /// Something happened, and the engine is about to hear of it.
    pub fn event(&mut self, now: Time, event: &Event) {
        self.input(now, &Input::Event(Cow::Borrowed(event)));
    }

    /// The engine is told that a timer has ended.
    pub fn timeout(&mut self, now: Time) {
        self.input(now, &Input::Timeout);
    }

    /// The engine is told what the node's Lease says.
    pub fn recall(&mut self, now: Time, left: &ToUndo, own: &BTreeSet<String>) {
        let (left, own) = (left.clone(), own.clone());
        self.input(now, &Input::Recall { left, own });
    }

    /// Where to record what policies learn.
    pub fn facts(&self) -> FactLog {
        let thread = self.thread.as_ref();
        let waiting = thread.map(|thread| Arc::clone(&thread.waiting));
        FactLog::new(waiting)
    }

    /// The drain has these policies since before the turn under way.
    pub fn policies(&mut self, policies: Vec<RecordedPolicy>) {
        self.write(&Line::Policies(policies));
    }

    /// The engine has commanded this.
    pub fn command(&mut self, command: &Command) {
        if self.thread.is_some() {
            push(&mut self.commands, command);
        }
    }

    /// The engine has said all that it has to say for now.
    pub fn end_turn(&mut self) {
        if self.inputs.is_empty() && self.commands.is_empty() {
            return;
        }
        // Taken out and put back, so that they keep their memory.
        let (mut inputs, mut commands) = (
            std::mem::take(&mut self.inputs),
            std::mem::take(&mut self.commands),
        );
        self.send(&[
            br#"{"turn":{"inputs":["#,
            &inputs,
            br#"],"commands":["#,
            &commands,
            b"]}}\n",
        ]);
        inputs.clear();
        commands.clear();
        (self.inputs, self.commands) = (inputs, commands);
    }

    /// The drain has ended. Waits for the disk, but not long.
    pub async fn end(mut self, end: End) {
        self.end_turn();
        self.write(&Line::End(end));
        let Some(thread) = self.thread.as_mut() else {
            return;
        };
        thread.waiting.close();
        if tokio::time::timeout(LAST_WRITE, &mut thread.written)
            .await
            .is_err()
        {
            tracing::warn!(
                "{} is still being written: the disk is slow",
                thread.path.display()
            );
        }
    }

    fn input(&mut self, now: Time, input: &Input<'_>) {
        if self.thread.is_some() {
            push(&mut self.inputs, &(now, input));
        }
    }

    fn write(&mut self, line: &Line) {
        let mut text = Vec::new();
        if write_json(&mut text, line) {
            self.send(&[&text, b"\n"]);
        }
    }

    fn send(&mut self, line: &[&[u8]]) {
        let Some(thread) = &self.thread else {
            return;
        };
        match thread.waiting.add(line) {
            Added::Yes => {}
            // The thread has said why.
            Added::Over => self.thread = None,
            Added::TooMuch => {
                let path = thread.path.display();
                tracing::warn!("{path}: the recording ends here: {MOST_WAITING} bytes wait for the disk");
                self.thread = None;
            }
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.waiting.close();
    }
}

/// Appends an element to the contents of a JSON array.
fn push(elements: &mut Vec<u8>, element: &impl Serialize) {
    let before = elements.len();
    if before > 0 {
        elements.push(b',');
    }
    if !write_json(elements, element) {
        elements.truncate(before);
    }
}

/// Maps of the engine have texts as keys, so this cannot fail.
fn write_json(out: &mut Vec<u8>, value: &impl Serialize) -> bool {
    serde_json::to_writer(out, value).is_ok()
}

/// Lines that wait for the thread.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    lines: Mutex<Lines>,
    /// There are some, or no more will come.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
    /// No more will come, or none will be written.
    is_closed: bool,
}

pub(crate) enum Added {
    Yes,
    Over,
    TooMuch,
}

impl Waiting {
    pub(crate) fn add(&self, line: &[&[u8]]) -> Added {
        let mut lines = self.lock();
        if lines.is_closed {
            return Added::Over;
        }
        let before = lines.text.len();
        let now = before + line.iter().map(|part| part.len()).sum::<usize>();
        if now > MOST_WAITING {
            return Added::TooMuch;
        }
        for part in line {
            lines.text.extend_from_slice(part);
        }
        if before == 0 || (before < ENOUGH && now >= ENOUGH) {
            self.changed.notify_one();
        }
        Added::Yes
    }

    fn close(&self) {
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

/// The thread.
struct Writer {
    path: PathBuf,
    encoder: GzEncoder<Counted>,
    most: u64,
    waiting: Arc<Waiting>,
}

impl Writer {
    fn run(mut self) {
        let done = self.write_all().and_then(|()| self.encoder.finish());
        self.waiting.close();
        if let Err(error) = done {
            tracing::warn!("{}: the recording ends here: {error}", self.path.display());
        }
    }

    /// Until the drain has ended, or the file is full.
    fn write_all(&mut self) -> io::Result<()> {
        // Who the drain is of is on the disk at once.
        let mut within = Duration::ZERO;
        while let Some(lines) = self.waiting.take(within) {
            within = TOGETHER;
            self.encoder.write_all(&lines)?;
            self.encoder.flush()?;
            if self.encoder.get_ref().bytes > self.most {
                let why = format!("it is larger than {} bytes", self.most);
                tracing::warn!("{}: the recording ends here: {why}", self.path.display());
                let line = serde_json::to_string(&Line::Cut(why))?;
                return writeln!(self.encoder, "{line}");
            }
        }
        Ok(())
    }
}

/// Makes the file, which must not exist.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::io::PipeReader;
    use std::os::fd::OwnedFd;

    use scupper_engine_simulation::processes;

    use super::*;
    use crate::FORMAT;

    fn begin(file: File) -> Recorder {
        let process = processes(0).swap_remove(0);
        let header = Header {
            format: FORMAT,
            program: "0.1.0".to_owned(),
            at: process.at,
            wall: process.at,
            request: process.request,
            checkpoint: None,
            policies: Vec::new(),
        };
        let path = PathBuf::from("recording");
        Recorder::begin(file, path, u64::MAX, header, || ()).unwrap()
    }

    fn stuck() -> (PipeReader, File) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, File::from(OwnedFd::from(writer)))
    }

    fn turn(recorder: &mut Recorder) {
        recorder.timeout(Time::from_millis(1));
        recorder.end_turn();
    }

    /// More than the disk takes and than may wait for it.
    fn turns_until_it_stops(recorder: &mut Recorder) {
        while recorder.thread.is_some() {
            turn(recorder);
        }
        turn(recorder);
    }

    fn end() -> End {
        End {
            at: Time::from_millis(2),
            outcome: "Drained".to_owned(),
            text: String::new(),
        }
    }

    #[tokio::test]
    async fn a_full_disk_ends_the_recording_only() {
        let mut recorder = begin(File::options().write(true).open("/dev/full").unwrap());
        turns_until_it_stops(&mut recorder);
        recorder.end(end()).await;
    }

    #[tokio::test]
    async fn a_disk_that_takes_nothing_ends_the_recording_only() {
        let (_reader, file) = stuck();
        let mut recorder = begin(file);
        turns_until_it_stops(&mut recorder);
        recorder.end(end()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_drain_waits_for_the_disk_but_not_for_long() {
        let (_reader, file) = stuck();
        let mut recorder = begin(file);
        turn(&mut recorder);
        recorder.end(end()).await;
    }
}
