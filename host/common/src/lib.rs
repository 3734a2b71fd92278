//! What every part of the host needs: the clock, and texts from elsewhere made safe to print. It knows nothing of drains.
#![deny(missing_docs)]

pub mod clock;
pub mod error;
#[cfg(feature = "samples")]
pub mod samples;
pub mod text;
