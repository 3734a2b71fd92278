//! Recordings of drains: where they go, which there are, and whether the engine still does the same.

mod args;
mod drains;
mod replay;

pub(crate) use args::{DrainsArgs, DriverRecordArgs, RecordArgs, ReplayArgs};
pub(crate) use drains::run as drains;
pub(crate) use replay::run as replay;
