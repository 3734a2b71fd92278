//! Drains and uncordons in the process of a command, with the driver's engine, Lease and reports.

mod begin;
mod options;
mod run;

pub use options::LocalOptions;
pub use run::{NodeResult, run};
