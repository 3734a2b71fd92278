//! `scupper policy`: what authors and operators do with policies. One file for each subcommand: options in, words and
//! an exit code out.

mod args;
mod build;
mod driver;
mod examine;
mod list;
mod new;
mod rollback;
mod run;
mod test;

use std::process::ExitCode;

pub(super) use args::PolicyCommand;

use crate::report::Format;

/// Does what was typed after `policy`.
pub(super) async fn run(command: &PolicyCommand, format: Format) -> ExitCode {
    match command {
        PolicyCommand::New(args) => new::run(args, format),
        PolicyCommand::Build(args) => build::run(args, format),
        PolicyCommand::Check(args) => examine::check(args, format).await,
        PolicyCommand::Inspect(args) => examine::inspect(args, format).await,
        PolicyCommand::Run(args) => run::run(args, format).await,
        PolicyCommand::Bench(args) => run::bench(args, format).await,
        PolicyCommand::Test(args) => test::run(args, format).await,
        PolicyCommand::List(args) => list::run(args, format).await,
        PolicyCommand::Rollback(args) => rollback::run(args, format).await,
    }
}
