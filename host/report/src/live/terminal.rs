//! The terminal: lines that scroll by, and below them a few that are drawn anew in place. All that is printed while
//! something stands there goes through here, so that nothing tears it. Writing to it may block: see `screen`.
//!
//! Nothing is hidden and no mode is set, so a process that is killed leaves the terminal as it was, with the last frame
//! in it. It must not know what the lines say.

use std::io::{self, IsTerminal as _, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use console::Term;
use scupper_engine::Time;

use super::Size;
use scupper_common::clock::Clock;
use scupper_common::text::without_unseen;

/// How often it is looked whether the lines are still true.
const TICK: Duration = Duration::from_millis(250);

/// A tick that comes so much later is that of a process that was stopped.
const LATE: Duration = Duration::from_secs(1);

/// Where standard output goes, and standard error with it.
#[derive(Debug)]
pub(super) struct Terminal {
    term: Term,
    /// Something can be drawn in place.
    is_terminal: bool,
    /// The log goes there as well.
    has_log: bool,
    shown: Mutex<DrawnLines>,
}

#[derive(Debug, Default)]
struct DrawnLines {
    /// Something is to stand there.
    is_live: bool,
    /// What stands there.
    lines: Vec<String>,
}

/// A display. It goes away with this.
#[derive(Debug)]
pub struct LiveDisplay {
    screen: Arc<Terminal>,
    /// The thread that draws ends with it.
    ticks: Option<Sender<()>>,
}

impl Terminal {
    /// That of this process.
    pub(super) fn of_process() -> Self {
        Self {
            term: Term::buffered_stdout(),
            is_terminal: io::stdout().is_terminal() && !console::is_dumb(),
            has_log: io::stderr().is_terminal(),
            shown: Mutex::default(),
        }
    }

    /// Whether anything can be drawn in place.
    pub(super) const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Draws these lines anew whenever they change, until what is returned is dropped. Where nothing can be drawn in
    /// place nothing is.
    pub(super) fn show(
        self: &Arc<Self>,
        clock: Clock,
        frame: impl Fn(Size, Time) -> Vec<String> + Send + 'static,
    ) -> LiveDisplay {
        let mut live = LiveDisplay {
            screen: Arc::clone(self),
            ticks: None,
        };
        if !self.is_terminal {
            return live;
        }
        self.shown().is_live = true;
        let (sender, ticks) = mpsc::channel();
        let screen = Arc::clone(self);
        // Not a task: a terminal that is held by Ctrl-S makes it wait.
        let drawing = move || {
            let mut looked = Instant::now();
            loop {
                // Stopped meanwhile, perhaps: then it is about to be said, and what stands there is not ours any more.
                if looked.elapsed() < LATE {
                    screen.draw(frame(screen.size(), clock.now()));
                }
                looked = Instant::now();
                match ticks.recv_timeout(TICK) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        match std::thread::Builder::new()
            .name("display".to_owned())
            .spawn(drawing)
        {
            Ok(_) => live.ticks = Some(sender),
            Err(error) => tracing::debug!(%error, "nothing is drawn in place"),
        }
        live
    }

    /// Whole lines that scroll by.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_terminal {
            // Nothing stands there, and a log that cannot be written must not hold this up.
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            return out.flush();
        }
        let mut shown = self.shown();
        self.look(&mut shown);
        if shown.lines.is_empty() {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            return out.flush();
        }
        self.erase(&shown.lines)?;
        (&self.term).write_all(bytes)?;
        self.redraw(0, &shown.lines)
    }

    /// Whole lines of the log.
    pub(super) fn write_log(&self, bytes: &[u8]) -> io::Result<()> {
        // Errors that others wrote stand in it, and colours of our own.
        let seen = std::str::from_utf8(bytes).map(without_unseen);
        let bytes = seen.as_ref().map_or(bytes, |seen| seen.as_bytes());
        if !self.is_terminal || !self.has_log {
            return io::stderr().write_all(bytes);
        }
        let mut shown = self.shown();
        self.look(&mut shown);
        if shown.lines.is_empty() {
            return io::stderr().write_all(bytes);
        }
        self.erase(&shown.lines)?;
        self.term.flush()?;
        io::stderr().write_all(bytes)?;
        self.redraw(0, &shown.lines)
    }

    /// The process was stopped and goes on: others have written below what stood there, which stays as it is.
    pub(super) fn forget(&self) {
        self.shown().lines.clear();
    }

    /// The last row is the cursor's, and a full line may wrap.
    fn size(&self) -> Size {
        let (rows, columns) = self.term.size();
        Size {
            rows: usize::from(rows.saturating_sub(1)).max(1),
            columns: usize::from(columns.saturating_sub(1)).max(1),
        }
    }

    fn draw(&self, lines: Vec<String>) {
        let mut shown = self.shown();
        self.look(&mut shown);
        if !shown.is_live || shown.lines == lines || !is_ours() {
            return;
        }
        let before = std::mem::replace(&mut shown.lines, lines);
        self.redraw(before.len(), &shown.lines).unwrap_or_default();
    }

    /// In the background the terminal is somebody else's, and what stood there has scrolled away.
    fn look(&self, shown: &mut DrawnLines) {
        if !shown.lines.is_empty() && !is_ours() {
            shown.lines.clear();
        }
    }

    /// Each line over the one that was there: nothing flickers.
    fn redraw(&self, before: usize, lines: &[String]) -> io::Result<()> {
        self.term.move_cursor_up(before)?;
        for line in lines {
            self.term.clear_line()?;
            self.term.write_line(line)?;
        }
        self.term.clear_to_end_of_screen()?;
        self.term.flush()
    }

    fn erase(&self, lines: &[String]) -> io::Result<()> {
        self.term.move_cursor_up(lines.len())?;
        self.term.clear_to_end_of_screen()
    }

    fn end(&self) {
        let mut shown = self.shown();
        self.look(&mut shown);
        let lines = std::mem::take(&mut *shown).lines;
        if !lines.is_empty() {
            let erased = self.erase(&lines).and_then(|()| self.term.flush());
            erased.unwrap_or_default();
        }
    }

    fn shown(&self) -> MutexGuard<'_, DrawnLines> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LiveDisplay {
    fn drop(&mut self) {
        if self.ticks.take().is_some() {
            self.screen.end();
        }
    }
}

/// We are in the foreground of the terminal, or it knows no such thing.
fn is_ours() -> bool {
    rustix::termios::tcgetpgrp(io::stdout()).map_or(true, |group| group == rustix::process::getpgrp())
}
