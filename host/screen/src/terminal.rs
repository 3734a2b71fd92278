//! The terminal: lines that scroll, and below them a few lines that are redrawn in place. All output goes through here
//! as long as lines are drawn, so that nothing tears them. Writing may block: see `screen`.
//!
//! No mode is set and no cursor is hidden, so a killed process leaves the terminal as it was, with the last frame in
//! it. This module must not know what the lines mean.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use console::Term;
use scupper_engine::Time;

use super::colour::{Painter, painted};
use super::text::{Size, fold_text};
use scupper_common::clock::Clock;
use scupper_common::text::without_unseen;

/// Interval between two checks whether the lines have changed.
const TICK: Duration = Duration::from_millis(250);

/// A tick that is late by this much shows that the process was stopped.
const LATE: Duration = Duration::from_secs(1);

/// Standard output, and standard error if it is a terminal as well.
#[derive(Debug)]
pub(super) struct Terminal {
    term: Term,
    /// Lines can be redrawn in place.
    is_terminal: bool,
    /// The log goes to a terminal as well.
    has_log: bool,
    /// See [`Terminal::for_people`].
    painter: OnceLock<Painter>,
    shown: Mutex<DrawnLines>,
}

#[derive(Debug, Default)]
struct DrawnLines {
    /// A display is active.
    is_live: bool,
    /// The lines drawn now.
    lines: Vec<String>,
}

/// An active display. Dropping it erases the lines.
#[derive(Debug)]
pub struct LiveDisplay {
    screen: Arc<Terminal>,
    /// Dropping this ends the drawing thread.
    ticks: Option<Sender<()>>,
}

impl Terminal {
    /// The terminal of this process.
    pub(super) fn of_process() -> Self {
        Self {
            term: Term::buffered_stdout(),
            is_terminal: io::stdout().is_terminal() && !console::is_dumb(),
            has_log: io::stderr().is_terminal(),
            painter: OnceLock::new(),
            shown: Mutex::default(),
        }
    }

    /// Whether lines can be redrawn in place.
    pub(super) const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Redraws these lines in place whenever they change, until the returned display is dropped. Does nothing if the
    /// output cannot redraw lines.
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
        // A thread and not a task, because a terminal paused by Ctrl-S blocks it.
        let drawing = move || {
            let mut looked = Instant::now();
            loop {
                // The process may just have been stopped. In that case the drawn lines are about to be forgotten and
                // must not be overwritten.
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

    /// Lines that are wider than the terminal are folded between words, and get their colours. Not those of a program's
    /// output.
    pub(super) fn for_people(&self, painter: Painter) {
        self.painter.get_or_init(|| painter);
    }

    /// The lines of a text as people read them.
    pub(super) fn shaped<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let has_colours = console::colors_enabled();
        let Some(painter) = self.painter.get().filter(|_| self.is_terminal || has_colours) else {
            return Cow::Borrowed(text);
        };
        let columns = if self.is_terminal { self.size().columns } else { 0 };
        let mut shaped = String::with_capacity(text.len());
        for line in text.lines() {
            for (place, line) in fold_text(line, columns).iter().enumerate() {
                let is_painted = has_colours && place == 0;
                shaped.push_str(&if is_painted {
                    painted(line, *painter)
                } else {
                    line.into()
                });
                shaped.push('\n');
            }
        }
        Cow::Owned(shaped)
    }

    /// Writes whole lines that scroll.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let shaped = std::str::from_utf8(bytes).map(|text| self.shaped(text));
        let bytes = shaped.as_ref().map_or(bytes, |text| text.as_bytes());
        if !self.is_terminal {
            // Nothing is drawn, and a blocked log must not block this write.
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            return out.flush();
        }
        let mut shown = self.shown();
        self.forget_in_background(&mut shown);
        if shown.lines.is_empty() {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            return out.flush();
        }
        self.erase(&shown.lines)?;
        (&self.term).write_all(bytes)?;
        self.redraw(0, &shown.lines)
    }

    /// Writes whole lines of the log.
    pub(super) fn write_log(&self, bytes: &[u8]) -> io::Result<()> {
        // The log contains error texts from outside, and our own colours.
        let seen = std::str::from_utf8(bytes).map(without_unseen);
        let bytes = seen.as_ref().map_or(bytes, |seen| seen.as_bytes());
        if !self.is_terminal || !self.has_log {
            return io::stderr().write_all(bytes);
        }
        let mut shown = self.shown();
        self.forget_in_background(&mut shown);
        if shown.lines.is_empty() {
            return io::stderr().write_all(bytes);
        }
        self.erase(&shown.lines)?;
        self.term.flush()?;
        io::stderr().write_all(bytes)?;
        self.redraw(0, &shown.lines)
    }

    /// Forgets the drawn lines after a stop (Ctrl-Z): other programs have written below them, so they stay as they are.
    pub(super) fn forget(&self) {
        self.shown().lines.clear();
    }

    /// Keeps the last row for the cursor, and the last column free because a full line may wrap.
    fn size(&self) -> Size {
        let (rows, columns) = self.term.size();
        Size {
            rows: usize::from(rows.saturating_sub(1)).max(1),
            columns: usize::from(columns.saturating_sub(1)).max(1),
        }
    }

    fn draw(&self, lines: Vec<String>) {
        let painter = self.painter.get().filter(|_| console::colors_enabled());
        let lines = match painter {
            Some(painter) => lines
                .iter()
                .map(|line| painted(line, *painter).into_owned())
                .collect(),
            None => lines,
        };
        let mut shown = self.shown();
        self.forget_in_background(&mut shown);
        if !shown.is_live || shown.lines == lines || !is_ours() {
            return;
        }
        let before = std::mem::replace(&mut shown.lines, lines);
        self.redraw(before.len(), &shown.lines).unwrap_or_default();
    }

    /// Forgets the drawn lines if the process runs in the background: another program uses the terminal, and the lines
    /// have scrolled away.
    fn forget_in_background(&self, shown: &mut DrawnLines) {
        if !shown.lines.is_empty() && !is_ours() {
            shown.lines.clear();
        }
    }

    /// Overwrites each line in place, which avoids flicker.
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
        self.forget_in_background(&mut shown);
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

/// Whether this process is in the foreground of the terminal; also true if the output has no foreground group.
fn is_ours() -> bool {
    rustix::termios::tcgetpgrp(io::stdout()).map_or(true, |group| group == rustix::process::getpgrp())
}
