//! All output of a process: lines that scroll, folded where the terminal is narrow, and below them lines that are redrawn in
//! place. It must not know what they mean.
#![deny(missing_docs)]

mod output_queue;
mod prefixed_writer;
mod screen;
mod terminal;
mod text;

pub use prefixed_writer::PrefixedWriter;
pub use screen::{Screen, fitted};
pub use terminal::LiveDisplay;
pub use text::{Size, bar, cut, cut_name, fold, padded, share, width};
