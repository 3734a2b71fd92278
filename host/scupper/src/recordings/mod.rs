//! Recordings of drains: where they go, which there are, whether the engine still does the same, and why they took so long.

mod args;
mod drains;
mod replay;
mod report;

pub use args::ReplayArgs;
pub(crate) use args::directory_of as directory;
pub(crate) use args::{DrainsArgs, DriverRecordArgs, RecordArgs, ReportArgs};
pub(crate) use drains::run as drains;
pub(crate) use replay::run as replay;
pub(crate) use report::run as report;

/// `4s disruption budget shop/cart, 2s ending of ReplicaSet shop/web`
pub fn waits_in_words(history: &scupper_recording::DrainHistory) -> String {
    scupper_drain_report::few(&scupper_drain_report::waits_of(history))
}
