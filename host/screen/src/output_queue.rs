//! A bounded output queue that never blocks the caller; a separate thread writes the lines. If the queue is full, lines
//! are dropped and counted, and the log reports the number as soon as there is room.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FileType, fstat};

/// Maximum size of the queue of one stream: about ten thousand lines.
const MOST_BYTES: usize = 1 << 20;
/// Poll interval while waiting for the queue to drain. Only a process that is about to end waits.
const LOOK: Duration = Duration::from_millis(5);

type WriteOut = dyn Fn(&[u8]) -> io::Result<()> + Send + Sync;

/// One output stream. Clones write to the same one.
#[derive(Clone)]
pub(super) struct OutputQueue {
    shared: Arc<Shared>,
    /// Writes directly, without a queue. A file never blocks, and lines that are written at once survive `kill -9`.
    /// Also used if no thread can be started.
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
    /// Size of `lines` and of the lines that are being written.
    bytes: usize,
    /// Number of lines dropped since the last log entry about it.
    dropped: u64,
}

impl OutputQueue {
    /// Starts writing to `file` with `write`, which may block.
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

    /// Queues whole lines. A closed pipe, for example of `head`, is not an error.
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

    /// Waits until everything is written.
    pub(super) async fn written(&self) {
        while self.shared.waiting().bytes > 0 {
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Shared {
    /// Writes queued lines until the process ends.
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

    /// A stream whose reader lets one write through per message.
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
    async fn a_reader_that_has_gone_away_blocks_no_writer() {
        let (queue, open, _) = gated();
        drop(open);
        for _ in 0..3000 {
            queue.push(&[b'x'; 1024]);
            queue.written().await;
        }
        assert_eq!(queue.shared.waiting().dropped, 0);
    }
}
