//! The doors: each hears in its own way that somebody wants a node drained or given back, and passes it on as a
//! wish. A door must not know the other edges, nor how a drain goes: changes come in as streams, wishes go out.
#![deny(missing_docs)]

pub mod cordon;
mod request;
pub mod slm;

pub use request::{DrainCommand, DrainFlags, DrainRequest, DriverState, ResumePoint};
