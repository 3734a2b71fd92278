//! All output and logs of this process. Writers never wait for the reader: neither an unread pipe nor a terminal paused
//! by Ctrl-S stops a drain.

use std::io::{self, Write};
use std::sync::Arc;

use scupper_engine::Time;

use super::colour::Painter;
use super::output_queue::OutputQueue;
use super::terminal::{LiveDisplay, Terminal};
use super::text::Size;
use scupper_common::clock::Clock;

/// The lines of a text as people read them on standard output: as they fit, and with their colours.
pub fn for_people(text: &str, painter: Painter) -> String {
    let terminal = Terminal::of_process();
    terminal.for_people(painter);
    terminal.shaped(text).into_owned()
}

/// Standard output, and standard error for the log.
#[derive(Debug)]
pub struct Screen {
    terminal: Arc<Terminal>,
    out: OutputQueue,
    log: OutputQueue,
}

impl Screen {
    /// The screen of this process.
    pub fn of_process() -> Self {
        let terminal = Arc::new(Terminal::of_process());
        let (to_out, to_log) = (Arc::clone(&terminal), Arc::clone(&terminal));
        Self {
            out: OutputQueue::start("stdout", io::stdout(), move |lines| to_out.write(lines)),
            log: OutputQueue::start("stderr", io::stderr(), move |lines| to_log.write_log(lines)),
            terminal,
        }
    }

    /// From now on, lines are for people: those that are wider than the terminal are folded between words, and words get
    /// their colours.
    pub fn for_people(&self, painter: Painter) {
        self.terminal.for_people(painter);
    }

    /// Whether lines can be redrawn in place.
    pub fn is_terminal(&self) -> bool {
        self.terminal.is_terminal()
    }

    /// Redraws these lines in place whenever they change, until the returned display is dropped. Does nothing if the
    /// output cannot redraw lines.
    pub fn show(
        &self,
        clock: Clock,
        frame: impl Fn(Size, Time) -> Vec<String> + Send + 'static,
    ) -> LiveDisplay {
        self.terminal.show(clock, frame)
    }

    /// Prints a line that scrolls.
    pub fn print(&self, text: &str) {
        self.out.push(format!("{text}\n").as_bytes());
    }

    /// A writer for lines that scroll.
    pub fn lines(&self) -> impl Write + Send + use<> {
        Lines {
            out: self.out.clone(),
            line: Vec::new(),
        }
    }

    /// A writer for the log.
    pub fn log(&self) -> impl Write + Send + use<> {
        Log(self.log.clone())
    }

    /// Waits until everything is written, however slow the reader is.
    pub async fn written(&self) {
        self.out.written().await;
        self.log.written().await;
    }

    /// Forgets the drawn lines after a stop (Ctrl-Z): other programs have written below them, so they stay as they are.
    pub fn forget(&self) {
        self.terminal.forget();
    }
}

/// Collects whole lines.
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

/// A writer for the log. Each log line arrives in one piece.
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
