//! `scupper config`: what operators do with configuration files before a driver reads them.

mod args;
mod check;

use std::process::ExitCode;

pub(super) use args::ConfigCommand;

use super::exit::Exit;
use crate::output::print;
use scupper_report::Format;

/// Does what was typed after `config`.
pub(super) async fn run(command: &ConfigCommand, format: Format) -> ExitCode {
    match command {
        ConfigCommand::Check(args) => check::run(args, format).await,
        ConfigCommand::Schema => {
            print(&format!("{:#}", scupper_config::schema()));
            Exit::Done.into()
        }
    }
}
