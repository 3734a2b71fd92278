//! All output of a process: lines that scroll, folded where the terminal is narrow, and below them lines that are redrawn in
//! place, both with the colours that their owner asks for. It must not know what they mean.
#![deny(missing_docs)]

mod colour;
mod output_queue;
mod prefixed_writer;
mod screen;
mod terminal;
mod text;

pub use colour::{Painter, Tone, colour_output};
pub use prefixed_writer::PrefixedWriter;
pub use screen::{Screen, for_people};
pub use terminal::LiveDisplay;
pub use text::{Size, bar, cut, cut_name, fold, padded, share, width};
