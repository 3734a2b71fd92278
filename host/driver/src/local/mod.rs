//! Drains and uncordons in the process of a command, with the driver's engine, Lease and reports.

mod begin;
mod error;
mod options;
mod run;

pub use error::LocalError;
pub use options::LocalOptions;
pub use run::{NodeResult, run};
