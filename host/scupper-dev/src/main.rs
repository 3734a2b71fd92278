//! The `scupper-dev` program: writes, builds and tests policies, and drains simulated clusters as a demonstration.
//!
//! Users type `scupper policy ...` and `scupper demo`; `scupper` finds this program and replaces itself with it.

mod args;
mod author;
mod demo;
mod differences;
mod policy;
mod replay;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};
use scupper::{DEFAULT_LOG, Exit, Output, completion_answered, no_yaml, run_process, version};

use args::{Args, Command};

fn main() -> ExitCode {
    if completion_answered(Args::command) {
        return Exit::Done.into();
    }
    let args = Args::parse();
    if let Command::CompilePolicy(task) = args.command {
        // A child with nothing but its task: no log, no runtime, no other threads.
        return scupper_policy::compile_child(&task.into());
    }
    let output = args.output.output;
    if output == Output::Yaml {
        return no_yaml();
    }
    let is_quiet = args.command.is_quiet() && args.output.log == DEFAULT_LOG;
    let log = if is_quiet { "warn" } else { &args.output.log };
    run_process(
        log,
        args.output.color,
        Duration::MAX,
        async |screen| match &args.command {
            Command::Policy(command) => policy::run(command, output.format()).await,
            Command::Replay(args) => replay::run(args, output.format()).await,
            Command::Demo(demo) => demo::run(demo, output.format(), screen).await,
            Command::Version => version(output),
            Command::CompilePolicy(_) => Exit::Bug.into(),
        },
    )
}
