//! Output that its writer never waits for: lines go into a bounded queue, and a thread of its own writes them. Lines that
//! find the queue full are dropped and counted, and the log says so once there is room again.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FileType, fstat};

/// So much may wait for its reader, of each stream: some ten thousand lines.
const MOST_BYTES: usize = 1 << 20;
/// How often it is looked whether all is written. Only a process that is about to end waits for that.
const LOOK: Duration = Duration::from_millis(5);

type WriteOut = dyn Fn(&[u8]) -> io::Result<()> + Send + Sync;

/// One stream. Clones write into the same.
#[derive(Clone)]
pub(super) struct OutputQueue {
    shared: Arc<Shared>,
    /// A file never blocks, and what is written to it at once survives `kill -9`. The same where there is no thread.
    is_direct: bool,
}

struct Shared {
    name: &'static str,
    write: Box<WriteOut>,
    waiting: Mutex<QueuedLines>,
    filled: Condvar,
}

#[derive(Default)]
struct QueuedLines {
    lines: VecDeque<Vec<u8>>,
    /// Of `lines`, and of what is being written.
    bytes: usize,
    /// Since the log last reported any.
    dropped: u64,
}

impl OutputQueue {
    /// Begins to write to `file` by `write`, which may block.
    pub(super) fn start(
        name: &'static str,
        file: impl AsFd,
        write: impl Fn(&[u8]) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let is_file =
            fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        let shared = Arc::new(Shared {
            name,
            write: Box::new(write),
            waiting: Mutex::default(),
            filled: Condvar::new(),
        });
        let is_direct = is_file || {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(move || shared.run()).is_err()
        };
        Self { shared, is_direct }
    }

    /// Whole lines. A reader that has gone away, as `head` does, does not count as an error.
    pub(super) fn push(&self, lines: &[u8]) {
        if self.is_direct {
            (self.shared.write)(lines).unwrap_or_default();
            return;
        }
        let mut waiting = self.shared.waiting();
        if waiting.bytes + lines.len() > MOST_BYTES {
            let count = lines.iter().filter(|byte| **byte == b'\n').count();
            waiting.dropped += u64::try_from(count).unwrap_or_default();
            return;
        }
        waiting.bytes += lines.len();
        waiting.lines.push_back(lines.to_vec());
        drop(waiting);
        self.shared.filled.notify_one();
    }

    /// Waits until all of it is written.
    pub(super) async fn written(&self) {
        while self.shared.waiting().bytes > 0 {
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Shared {
    /// Until the process ends.
    fn run(&self) {
        loop {
            let lines = self.next();
            (self.write)(&lines).unwrap_or_default();
            let dropped = {
                let mut waiting = self.waiting();
                waiting.bytes -= lines.len();
                std::mem::take(&mut waiting.dropped)
            };
            if dropped > 0 {
                tracing::warn!(
                    stream = self.name,
                    lines = dropped,
                    "this output was not read in time: lines of it were dropped"
                );
            }
        }
    }

    fn next(&self) -> Vec<u8> {
        let mut waiting = self.waiting();
        loop {
            if let Some(lines) = waiting.lines.pop_front() {
                return lines;
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, QueuedLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for OutputQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputQueue")
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A stream whose reader lets one write through for each word it gives.
    fn gated() -> (OutputQueue, mpsc::Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let (open, gate) = mpsc::channel();
        let (gate, kept) = (Mutex::new(gate), Arc::new(Mutex::new(Vec::new())));
        let written = Arc::clone(&kept);
        let (end, _) = io::pipe().unwrap();
        let queue = OutputQueue::start("test", end, move |lines| {
            gate.lock().unwrap().recv().map_err(io::Error::other)?;
            written.lock().unwrap().extend_from_slice(lines);
            Ok(())
        });
        (queue, open, kept)
    }

    #[tokio::test]
    async fn a_reader_that_stands_still_costs_lines_and_no_time() {
        let (queue, open, kept) = gated();
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        for _ in 0..1030 {
            queue.push(&line);
        }
        assert_eq!(queue.shared.waiting().dropped, 6, "what fits in 1 MiB is kept");
        for _ in 0..1024 {
            open.send(()).unwrap();
        }
        queue.written().await;
        assert_eq!(kept.lock().unwrap().len(), 1024 * line.len());
        queue.push(b"later\n");
        open.send(()).unwrap();
        queue.written().await;
        assert!(kept.lock().unwrap().ends_with(b"later\n"));
        assert_eq!(queue.shared.waiting().dropped, 0, "the log has reported it");
    }

    #[tokio::test]
    async fn a_reader_that_has_gone_away_stops_nobody() {
        let (queue, open, _) = gated();
        drop(open);
        for _ in 0..3000 {
            queue.push(&[b'x'; 1024]);
            queue.written().await;
        }
        assert_eq!(queue.shared.waiting().dropped, 0);
    }
}
