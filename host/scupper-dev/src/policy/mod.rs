//! `scupper policy`: the commands for authors. One file for each subcommand: options in, text and an exit code out.

mod args;
mod build;
mod diff;
mod examine;
mod new;
mod run;
mod test;
#[cfg(test)]
mod texts;

use std::process::ExitCode;

pub(crate) use args::PolicyCommand;

use scupper_report::Format;

/// Runs the subcommand after `policy`.
pub(crate) async fn run(command: &PolicyCommand, format: Format) -> ExitCode {
    match command {
        PolicyCommand::New(args) => new::run(args, format),
        PolicyCommand::Build(args) => build::run(args, format),
        PolicyCommand::Check(args) => examine::check(args, format).await,
        PolicyCommand::Inspect(args) => examine::inspect(args, format).await,
        PolicyCommand::Run(args) => run::run(args, format).await,
        PolicyCommand::Diff(args) => diff::run(args, format).await,
        PolicyCommand::Bench(args) => run::bench(args, format).await,
        PolicyCommand::Test(args) => test::run(args, format).await,
    }
}
