//! `scupper policy list`, `rollback` and `promote`: what operators do with the policies of a driver.

mod args;
pub(crate) mod driver;
mod list;
mod promote;
mod rollback;

use std::process::ExitCode;

pub(super) use args::{DriverArgs, PolicyCommand};

use scupper_report::Format;

use crate::exit::Exit;

/// Does what was typed after `policy`.
pub(super) async fn run(command: &PolicyCommand, format: Format) -> ExitCode {
    match command {
        PolicyCommand::List(args) => list::run(args, format).await,
        PolicyCommand::Rollback(args) => rollback::run(args, format).await,
        PolicyCommand::Promote(args) => promote::run(args, format),
        _ => Exit::Bug.into(),
    }
}
