//! What is under way, as a display that is redrawn in place in a terminal: the facts of each node, the lines that they
//! are worth in the room there is, and the drawing.
//!
//! The lines are made of facts, a size and a time, and of nothing else; only `screen` knows a terminal. None of it knows
//! who drains.

mod board;
mod course;
mod frame;
mod screen;
mod text;
mod waits;

pub use board::Board;
pub use screen::{Live, Screen};
pub use text::Size;
pub(super) use text::{fold, share};
