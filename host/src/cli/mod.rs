//! The command line: what was typed becomes options for `app`, and what became of it an exit code.
//!
//! It must not know how anything is done. It and `report` are the only ones that print.

mod address;
mod args;
mod commands;
mod completion;
mod config;
mod demo;
mod doctor;
mod exit;
mod man;
mod node;
mod options;
mod policy;
mod signals;
mod version;
mod yaml;

pub use args::Args;
pub use commands::main;
pub use exit::Exit;
