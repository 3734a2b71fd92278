//! What is under way, as a display that is redrawn in place in a terminal: the facts of each node, the lines that they
//! are worth in the room there is, and the drawing.
//!
//! The lines are made of facts, a size and a time, and of nothing else; only `screen` and `terminal` know where they go. None of it knows
//! who drains.

mod blockers;
mod frame;
mod node_progress;
mod output_queue;
mod progress_board;
mod screen;
mod terminal;
mod text;

pub use progress_board::ProgressBoard;
pub use screen::Screen;
pub use terminal::LiveDisplay;
pub use text::Size;
pub(super) use text::{fold, share};
