//! The live display, redrawn in place in a terminal: the facts of each node, the lines that fit, and the drawing.
//!
//! The lines depend only on facts, a size and a time; only `screen` and `terminal` know the output. No module here
//! knows which process drains.

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
