//! The commands: options in, words and an exit code out.

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use super::args::{self, Args, CleanupArgs, Command, PluginArgs};
use super::completion;
use super::exit::Exit;
use super::options::{self, OptionsError};
use super::signals::{self, Signals};
use crate::app::{self, AppError, CleanupOptions, HandOverError, Output, Plugin};
use crate::report::{Format, Screen};
use crate::text::spaced_line;

/// How long a driver that has ended waits for the reader of its last lines.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs what the command line asks for.
pub fn main() -> ExitCode {
    if completion::answered() {
        return Exit::Done.into();
    }
    let args = Args::parse();
    if let Command::CompilePolicy(task) = args.command {
        // A child with nothing but its task: no log, no runtime, no threads but its own.
        return crate::policy::compile_child(&task.into());
    }
    // These tell their story themselves.
    let tells = matches!(&args.command, Command::Demo(_))
        || matches!(&args.command, Command::Policy(command) if command.is_quiet());
    let quiet = tells && args.log == args::DEFAULT_LOG;
    let screen = Arc::new(Screen::of_process());
    log_to_stderr(if quiet { "warn" } else { &args.log }, &screen);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error, Exit::Bug),
    };
    if args
        .command
        .cluster()
        .is_some_and(|it| it.insecure_skip_tls_verify)
    {
        warn(
            "--insecure-skip-tls-verify: the API server's certificate is not checked; anyone in between can read and change everything",
        );
    }
    runtime.block_on(async {
        let is_driver = matches!(args.command, Command::KubeletPlugin(_));
        let code = run(args, &screen).await;
        // The caller of a command reads what it prints, if slowly; a log may have no reader.
        let limit = if is_driver { LAST_WORDS } else { Duration::MAX };
        tokio::select! {
            () = screen.written() => {}
            () = tokio::time::sleep(limit) => {}
            () = Signals::new().came(1) => {}
        }
        code
    })
}

async fn run(args: Args, screen: &Arc<Screen>) -> ExitCode {
    let (output, format) = (args.output, args.output.format());
    if output == args::Output::Yaml && !args.command.prints_results() {
        complain("--output yaml: this command prints steps as they happen, or text; use json or human");
        return Exit::Usage.into();
    }
    if screen.is_terminal() {
        signals::forget_when_stopped(screen);
    }
    match args.command {
        Command::KubeletPlugin(plugin) => kubelet_plugin(&plugin, format, screen).await,
        Command::Plan(plan) => super::node::plan(&plan, output).await,
        Command::Drain(drain) => super::node::drain(&drain, output, screen).await,
        Command::Uncordon(uncordon) => super::node::uncordon(&uncordon, format, screen).await,
        Command::Cancel(cancel) => super::node::cancel(&cancel, output).await,
        Command::Status(status) => super::node::status(&status, output, screen).await,
        Command::Cleanup(cleanup) => clean_up(&cleanup, output).await,
        Command::Doctor(doctor) => super::doctor::run(&doctor, output).await,
        Command::Config(command) => super::config::run(&command, format).await,
        Command::Policy(command) => super::policy::run(&command, format).await,
        Command::Demo(demo) => super::demo::run(&demo, format).await,
        Command::Version => super::version::run(output),
        Command::Completion(shell) => completion::run(&shell),
        Command::Man(man) => super::man::run(&man),
        Command::CompilePolicy { .. } => Exit::Bug.into(),
    }
}

fn log_to_stderr(filter: &str, screen: &Arc<Screen>) {
    let (filter, problem) = match EnvFilter::try_new(filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(args::DEFAULT_LOG), Some(error)),
    };
    // https://no-color.org: any value but the empty one.
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_colourful = std::io::stderr().is_terminal() && !is_plain;
    // The log may be a file in a folder that is watched: a line for each change there would be a change there.
    let filter = match "notify=info".parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    };
    let screen = Arc::clone(screen);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || screen.log())
        .with_ansi(is_colourful)
        .init();
    if let Some(error) = problem {
        tracing::warn!(%error, "--log: the filter makes no sense; using warn,scupper=info");
    }
}

async fn kubelet_plugin(args: &PluginArgs, format: Format, screen: &Arc<Screen>) -> ExitCode {
    let mut options = match options::plugin(args) {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    options.format = format;
    let lines = Arc::clone(screen);
    let output: Output = Arc::new(move || Box::new(lines.lines()));
    let signals = Signals::new();
    // It may have to wait for the cluster first.
    let started = tokio::select! {
        started = Plugin::start_with_output(options, output) => started,
        // What it has begun is taken back: a policy that is being compiled is not what it died of.
        () = signals.came(1) => return Exit::Done.into(),
    };
    let plugin = match started {
        Ok(plugin) => plugin,
        Err(error) => return failed(&error),
    };
    match plugin.run_until(signals.came(1)).await {
        Ok(()) => Exit::Done.into(),
        Err(error) => failed(&error),
    }
}

async fn clean_up(cleanup: &CleanupArgs, output: args::Output) -> ExitCode {
    let options = CleanupOptions {
        connection: cleanup.cluster.connection(),
        node: cleanup.node_name.clone(),
        driver: cleanup.driver_name.clone(),
    };
    match app::cleanup(options).await {
        Ok(removed) => {
            let text = match output {
                args::Output::Json | args::Output::Yaml => {
                    output.document(&serde_json::json!({ "removed": removed }))
                }
                args::Output::Human if removed.is_empty() => {
                    format!("nothing of ours is left on {}", cleanup.node_name)
                }
                args::Output::Human => removed
                    .iter()
                    .map(|what| format!("removed {what}"))
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            print(&text);
            Exit::Done.into()
        }
        Err(error) => failed(&error),
    }
}

/// Which exit code an error is worth.
pub(super) const fn exit_of(error: &AppError) -> Exit {
    match error {
        AppError::Connect(_)
        | AppError::Node { .. }
        | AppError::Discovery(_)
        | AppError::Rights(_)
        | AppError::Selector { .. }
        | AppError::LifecycleNotServed
        | AppError::Cleanup(_)
        | AppError::NoPlan { .. } => Exit::Cluster,
        AppError::Cache { .. }
        | AppError::Policies(_)
        | AppError::Reload(_)
        | AppError::Slm(_)
        | AppError::Metrics(_)
        | AppError::Traces(_) => Exit::Config,
        AppError::HandOver(HandOverError::OwnFlag { .. }) => Exit::Config,
        AppError::HandOver(_) => Exit::Cluster,
        AppError::Local(_) => Exit::DrainFailed,
        AppError::Runtime(_) => Exit::Bug,
    }
}

pub(super) fn failed(error: &AppError) -> ExitCode {
    fail(error, exit_of(error))
}

pub(super) fn wrong_options(error: &OptionsError) -> ExitCode {
    fail(error, Exit::Config)
}

/// One error with all its causes: `error: could not load the policies: policy slurm: …`.
pub(super) fn fail(error: &dyn Error, exit: Exit) -> ExitCode {
    complain(&app::chain(error));
    exit.into()
}

/// Says what is wrong.
pub(super) fn complain(text: &str) {
    let mut stderr = std::io::stderr().lock();
    for line in text.lines() {
        writeln!(stderr, "error: {}", spaced_line(line)).unwrap_or_default();
    }
}

/// Says what is dangerous, whatever --log says.
fn warn(text: &str) {
    writeln!(std::io::stderr().lock(), "warning: {text}").unwrap_or_default();
}

/// A reader that has gone away, as `head` does, is no error.
pub(super) fn print(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").unwrap_or_default();
}
