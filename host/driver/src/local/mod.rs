//! Drains and uncordons from the command line: the same engine and the same drive as the driver's, in this process.

mod begin;
mod error;
mod options;
mod run;

pub use error::LocalError;
pub use options::LocalOptions;
pub use run::{NodeResult, run};
