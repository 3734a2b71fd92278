//! Whether what is under way is shown in place, and where: only to people, only in a terminal, and only where nobody has
//! asked for plain lines.

use std::sync::Arc;

use super::args::{ProgressMode, ShownArgs};
use crate::signals::Signals;
use scupper_common::clock::Clock;
use scupper_report::{Format, ProgressBoard};
use scupper_screen::{LiveDisplay, Screen};

/// Where a command is shown.
pub(super) struct Shown {
    pub(super) screen: Arc<Screen>,
    /// How each node stands; `None`: there are lines alone.
    pub(super) board: Option<ProgressBoard>,
}

impl Shown {
    pub(super) fn new(args: ShownArgs, format: Format, screen: &Arc<Screen>) -> Self {
        Self {
            screen: Arc::clone(screen),
            board: is_live(args, format, screen).then(ProgressBoard::default),
        }
    }

    /// Waits until its reader has all of it, or until a second signal.
    pub(super) async fn written(&self, signals: &Signals) {
        tokio::select! {
            () = self.screen.written() => {}
            () = signals.came(2) => {}
        }
    }

    /// From now on, until what is returned is dropped.
    pub(super) fn begin(&self, clock: Clock) -> Option<LiveDisplay> {
        let board = self.board.clone()?;
        Some(self.screen.show(clock, move |room, now| board.frame(room, now)))
    }
}

pub(super) fn is_live(args: ShownArgs, format: Format, screen: &Screen) -> bool {
    args.progress == ProgressMode::Auto && format == Format::Human && screen.is_terminal()
}
