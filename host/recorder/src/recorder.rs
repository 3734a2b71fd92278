//! Takes inputs and commands from a running drain, as lines for the thread that writes them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Command, Event, Time, ToUndo};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::facts::FactLog;
use crate::line::{End, Header, Input, Line, RecordedPolicy, StartEstimate, WrittenInput};
use crate::pods::WrittenPods;
use crate::shadow::ShadowPlan;
use crate::writer::{Waiting, write};

/// Of turns in which nothing happens, one is recorded in this time.
const IDLE: Duration = Duration::from_secs(60);
/// So many bytes of the buffers are kept for the next turn.
const KEPT: usize = 16 << 10;
/// How long the end of a drain waits for the disk.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// Records one drain. Whatever goes wrong is logged once, and the drain goes on without.
#[derive(Debug, Default)]
pub struct Recorder {
    thread: Option<Thread>,
    pods: WrittenPods,
    /// The turn so far, as the contents of two JSON arrays.
    inputs: Vec<u8>,
    commands: Vec<u8>,
    /// The turn so far has only ends of timers, the last of which was then.
    idle: Option<Time>,
    /// When the last such turn was recorded, if no other has come since.
    recorded_idle: Option<Time>,
}

#[derive(Debug)]
struct Thread {
    path: PathBuf,
    waiting: Arc<Waiting>,
    /// Closed when all is written.
    written: oneshot::Receiver<()>,
}

impl Recorder {
    /// Records in the file that `open` makes, of at most so many bytes; `ended` is called when no more is written to it. The
    /// caller waits for neither.
    pub fn begin(
        open: impl FnOnce() -> io::Result<File> + Send + 'static,
        path: PathBuf,
        most: u64,
        header: Header,
        ended: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let waiting = Arc::new(Waiting::new(path.clone()));
        let (done, written) = oneshot::channel();
        let theirs = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("recording".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
                write(theirs, most, open);
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
        self.idle = None;
        if self.thread.is_none() {
            return;
        }
        match self.pods.told(event) {
            Some(change) => push(&mut self.inputs, &(now, WrittenInput::Pod(change))),
            None => push(&mut self.inputs, &(now, Input::Event(Cow::Borrowed(event)))),
        }
    }

    /// The engine is told that a timer has ended.
    pub fn timeout(&mut self, now: Time) {
        if self.inputs.is_empty() {
            self.idle = Some(now);
        }
        self.input(now, &Input::Timeout);
    }

    /// The engine is told what the node's Lease says.
    pub fn recall(&mut self, now: Time, left: &ToUndo, own: &BTreeSet<String>) {
        self.idle = None;
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

    /// Shadow policies would have made this of the drain.
    pub fn shadows(&mut self, plans: Vec<ShadowPlan>) {
        self.write(&Line::Shadows(plans));
    }

    /// The drain will probably end then.
    pub fn estimate(&mut self, estimate: StartEstimate) {
        self.write(&Line::Estimate(estimate));
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
        if self.is_like_the_last() {
            self.inputs.clear();
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
        for kept in [&mut inputs, &mut commands] {
            kept.clear();
            // The turn that lists all pods is much longer than any other.
            kept.shrink_to(KEPT);
        }
        (self.inputs, self.commands) = (inputs, commands);
    }

    /// A turn in which a timer ended and nothing was commanded changes nothing that the next one does not. A display has four a
    /// second.
    fn is_like_the_last(&mut self) -> bool {
        let idle = self.idle.take().filter(|_| self.commands.is_empty());
        let Some(now) = idle else {
            self.recorded_idle = None;
            return false;
        };
        let is_soon = |last: Time| now.since(last) < IDLE;
        let is_like = self.recorded_idle.is_some_and(is_soon);
        if !is_like {
            self.recorded_idle = Some(now);
        }
        is_like
    }

    /// The drain has ended. Waits for the disk, but not long.
    pub async fn end(mut self, end: End) {
        self.end_turn();
        let Some(thread) = self.thread.as_mut() else {
            return;
        };
        let mut text = Vec::new();
        match write_json(&mut text, &Line::End(end)) {
            true => thread.waiting.add_last(&[&text, b"\n"]),
            false => thread.waiting.close(),
        }
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
        if !thread.waiting.add(line) {
            self.thread = None;
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
    serde_json::to_writer(Pieces(out), value).is_ok()
}

/// Half of what serde_json writes is one byte each: quotation marks, commas, brackets. A call for each would take longer.
struct Pieces<'a>(&'a mut Vec<u8>);

impl io::Write for Pieces<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match bytes {
            [one] => self.0.push(*one),
            bytes => self.0.extend_from_slice(bytes),
        }
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::PipeReader;
    use std::os::fd::OwnedFd;

    use scupper_engine_simulation::processes;

    use super::*;
    use scupper_recording::{Directory, Recording};

    use crate::FORMAT;
    use crate::writer::{MOST_WAITING, create};

    fn begin(file: File) -> Recorder {
        begin_of(file, u64::MAX)
    }

    fn begin_of(file: File, most: u64) -> Recorder {
        begin_with(move || Ok(file), most)
    }

    fn begin_with(open: impl FnOnce() -> io::Result<File> + Send + 'static, most: u64) -> Recorder {
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
        Recorder::begin(open, path, most, header, || ()).unwrap()
    }

    fn stuck() -> (PipeReader, File) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, File::from(OwnedFd::from(writer)))
    }

    fn turn(recorder: &mut Recorder) {
        recorder.event(Time::from_millis(1), &Event::Pause);
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
    #[tokio::test]
    async fn a_large_recording_is_cut_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut recorder = begin_of(create(&path).unwrap(), 100);
        turns_until_it_stops(&mut recorder);
        recorder.end(end()).await;
        let recording = loop {
            let recording = Recording::read(&path).unwrap();
            if recording.cut.is_some() {
                break recording;
            }
            tokio::task::yield_now().await;
        };
        let why = "it is larger than 100 bytes";
        assert_eq!(recording.cut.as_deref(), Some(why));
        assert!(recording.end.is_none());
    }

    /// It is too large once all is written. Nothing is to be cut off any more, and the last line is its end.
    #[tokio::test]
    async fn a_drain_whose_end_is_recorded_is_not_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl.gz");
        let file = create(&path).unwrap();
        let (ended, may_open) = std::sync::mpsc::channel();
        let open = move || {
            may_open.recv().unwrap();
            Ok(file)
        };
        let mut recorder = begin_with(open, 100);
        turn(&mut recorder);
        tokio::join!(recorder.end(end()), async { ended.send(()).unwrap() });
        let recording = Recording::read(&path).unwrap();
        assert_eq!(recording.cut, None);
        assert_eq!(recording.end.unwrap().outcome, end().outcome);
        let (listed, _) = Directory::new(dir.path().to_owned(), None).list().unwrap();
        assert!(listed[0].end.is_some());
    }

    #[test]
    fn nothing_is_written_behind_the_last_line() {
        let waiting = Waiting::new(PathBuf::from("recording"));
        waiting.add_last(&[b"end\n"]);
        assert!(!waiting.add(&[b"facts\n"]));
    }

    #[tokio::test]
    async fn one_long_line_is_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut recorder = begin(create(&path).unwrap());
        let waiting = Arc::clone(&recorder.thread.as_ref().unwrap().waiting);
        while !waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        let policy = "x".repeat(2 * MOST_WAITING);
        recorder.event(Time::from_millis(1), &Event::HookDue { policy });
        recorder.end_turn();
        turn(&mut recorder);
        recorder.end(end()).await;
        // The end may wait for the disk in vain.
        let recording = loop {
            let recording = Recording::read(&path).unwrap();
            if recording.end.is_some() || recording.cut.is_some() {
                break recording;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!((recording.turns.len(), recording.cut), (2, None));
    }
}
