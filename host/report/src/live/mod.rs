//! The live display, redrawn in place in a terminal: the facts of each node, and the lines that fit.
//!
//! The lines depend only on facts, a size and a time; `scupper-screen` draws them. No module here knows which process drains.

mod blockers;
mod frame;
mod node_progress;
mod progress_board;

pub use progress_board::ProgressBoard;
