//! Shared by all parts of the host: the clock, and escaping of foreign text for display. It knows nothing of drains.
#![deny(missing_docs)]

pub mod clock;
pub mod error;
#[cfg(feature = "samples")]
pub mod samples;
pub mod text;
