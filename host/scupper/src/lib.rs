//! The `scupper` program: turns arguments into options for the driver's crates, and their result into an exit code.
//!
//! It must not know how anything is done. It and `report` are the only ones that print. `scupper-dev` uses its output,
//! exit codes and process.
#![deny(missing_docs)]

mod address;
mod args;
mod command_line;
mod commands;
mod compile;
mod completion;
mod config;
mod dev_program;
mod doctor;
#[cfg(test)]
mod error_texts;
mod exit;
mod forecast;
mod man;
mod node;
mod options;
mod output;
mod policy;
mod precompile;
mod process;
mod recordings;
mod setting_flags;
mod signals;
mod version;
mod yaml;

pub use args::Args;
pub use commands::{main, typed};
pub use compile::CompileArgs;
pub use completion::answered as completion_answered;
pub use exit::Exit;
pub use node::plan_for_people;
pub use options::{OptionsError, desired_policies, traces_from_env};
pub use output::{
    ColourMode, DEFAULT_LOG, Output, OutputArgs, driver_failed, fail, inform, no_yaml, print, wrong_options,
};
pub use process::run_process;
pub use recordings::{ReplayArgs, waits_in_words};
pub use scupper_use_cases::{Planned, PlannedTrigger};
pub use version::run as version;
