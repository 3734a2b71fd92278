//! All that this process prints and logs. Whoever does so never waits for whoever reads it: a pipe that nobody reads and a
//! terminal that is held by Ctrl-S stop no drain.

use std::io::{self, Write};
use std::sync::Arc;

use scupper_engine::Time;

use super::Size;
use super::output_queue::OutputQueue;
use super::terminal::{LiveDisplay, Terminal};
use scupper_common::clock::Clock;

/// Standard output, and standard error for the log.
#[derive(Debug)]
pub struct Screen {
    terminal: Arc<Terminal>,
    out: OutputQueue,
    log: OutputQueue,
}

impl Screen {
    /// That of this process.
    pub fn of_process() -> Self {
        let terminal = Arc::new(Terminal::of_process());
        let (to_out, to_log) = (Arc::clone(&terminal), Arc::clone(&terminal));
        Self {
            out: OutputQueue::start("stdout", io::stdout(), move |lines| to_out.write(lines)),
            log: OutputQueue::start("stderr", io::stderr(), move |lines| to_log.write_log(lines)),
            terminal,
        }
    }

    /// Whether anything can be drawn in place.
    pub fn is_terminal(&self) -> bool {
        self.terminal.is_terminal()
    }

    /// Draws these lines anew whenever they change, until what is returned is dropped. Where nothing can be drawn in
    /// place nothing is.
    pub fn show(
        &self,
        clock: Clock,
        frame: impl Fn(Size, Time) -> Vec<String> + Send + 'static,
    ) -> LiveDisplay {
        self.terminal.show(clock, frame)
    }

    /// A line that scrolls by.
    pub fn print(&self, text: &str) {
        self.out.push(format!("{text}\n").as_bytes());
    }

    /// Where lines can be written to that scroll by.
    pub fn lines(&self) -> impl Write + Send + use<> {
        Lines {
            out: self.out.clone(),
            line: Vec::new(),
        }
    }

    /// Where the log can be written to.
    pub fn log(&self) -> impl Write + Send + use<> {
        Log(self.log.clone())
    }

    /// Waits until all of it is written, however long its reader takes.
    pub async fn written(&self) {
        self.out.written().await;
        self.log.written().await;
    }

    /// The process was stopped and goes on: others have written below what stood there, which stays as it is.
    pub fn forget(&self) {
        self.terminal.forget();
    }
}

/// Gathers whole lines.
struct Lines {
    out: OutputQueue,
    line: Vec<u8>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            self.out.push(&lines);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log's lines come each in one piece.
struct Log(OutputQueue);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
