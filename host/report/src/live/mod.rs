//! What is under way, as a display that is redrawn in place in a terminal: the facts of each node, the lines that they
//! are worth in the room there is, and the drawing.
//!
//! The lines are made of facts, a size and a time, and of nothing else; only `screen` and `terminal` know where they go. None of it knows
//! who drains.

mod board;
mod course;
mod frame;
mod queue;
mod screen;
mod terminal;
mod text;
mod waits;

pub use board::Board;
pub use screen::Screen;
pub use terminal::Live;
pub use text::Size;
pub(super) use text::{fold, share};
