//! The commands: options in, words and an exit code out.

use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};
use scupper_driver::KubeletPlugin;
use scupper_report::{Format, tone_of};
use scupper_screen::Screen;
use scupper_use_cases::{self as use_cases, CleanedUp, CleanupOptions};

use crate::args::{Args, CleanupArgs, Command, PluginArgs};
use crate::command_line;
use crate::completion;
use crate::dev_program;
use crate::exit::Exit;
use crate::options;
use crate::output::{Output, complain, driver_failed, failed, no_yaml, print, warn, wrong_options};
use crate::process::run_process;
use crate::signals::Signals;

/// How long a driver that has ended waits for the reader of its last lines.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs what the command line asks for.
pub fn main() -> ExitCode {
    if completion::is_for_dev_program() {
        dev_program::complete();
    }
    if completion::answered(Args::command) {
        return Exit::Done.into();
    }
    let typed = command_line::arranged(std::env::args_os());
    if let Some(words) = command_line::renamed(&typed) {
        complain(&words);
        return Exit::Usage.into();
    }
    if let Some(help) = command_line::short_help(&typed, Args::command()) {
        print(help.trim_end());
        return Exit::Done.into();
    }
    let args = Args::parse_from(typed);
    if let Command::CompilePolicy(task) = args.command {
        // A child with nothing but its task: no log, no runtime, no threads but its own.
        return scupper_policy::compile_child(&task.into());
    }
    if args.command.is_of_dev_program() {
        return dev_program::run();
    }
    if args
        .command
        .cluster()
        .is_some_and(|it| it.insecure_skip_tls_verify)
    {
        warn(
            "--insecure-skip-tls-verify: the API server's certificate is not checked; anyone in between can read and change everything",
        );
    }
    // The caller of a command reads what it prints, if slowly; a log may have no reader.
    let is_driver = matches!(args.command, Command::KubeletPlugin(_));
    let last_lines = if is_driver { LAST_WORDS } else { Duration::MAX };
    let log = args.output.log.clone();
    let colours = args.output.color;
    run_process(&log, colours, last_lines, async |screen| run(args, screen).await)
}

/// Runs a command in this process, as it is typed behind `scupper`. It prints to standard output what it always prints.
///
/// # Errors
///
/// When there is no such command, or not with these flags.
pub async fn typed<'a>(
    words: impl IntoIterator<Item = &'a OsStr>,
    screen: &Arc<Screen>,
) -> Result<ExitCode, clap::Error> {
    let words = std::iter::once(OsStr::new("scupper")).chain(words);
    Ok(run(Args::try_parse_from(words)?, screen).await)
}

async fn run(args: Args, screen: &Arc<Screen>) -> ExitCode {
    let output = args.output.output;
    let format = output.format();
    if output == Output::Yaml && !args.command.prints_results() {
        return no_yaml();
    }
    if format == Format::Human {
        screen.for_people(tone_of);
    }
    match args.command {
        Command::KubeletPlugin(plugin) => kubelet_plugin(&plugin, format, screen).await,
        Command::Plan(plan) => crate::node::plan(&plan, output).await,
        Command::Forecast(forecast) => crate::forecast::run(&forecast, output, screen).await,
        Command::Drain(drain) => crate::node::drain(&drain, output, screen).await,
        Command::Uncordon(uncordon) => crate::node::uncordon(&uncordon, format, screen).await,
        Command::Cancel(cancel) => crate::node::cancel(&cancel, output).await,
        Command::Status(status) => crate::node::status(&status, output, screen).await,
        Command::Cleanup(cleanup) => clean_up(&cleanup, output).await,
        Command::Drains(drains) => crate::recordings::drains(&drains, output),
        Command::Replay(replay) => crate::recordings::replay(&replay, output),
        Command::Report(report) => crate::recordings::report(&report, output),
        Command::Doctor(doctor) => crate::doctor::run(&doctor, output).await,
        Command::Config(command) => crate::config::run(&command, format).await,
        Command::Policy(command) => crate::policy::run(&command, format).await,
        Command::Version => crate::version::run(output),
        Command::Completion(shell) => completion::run(&shell),
        Command::Precompile(policies) => crate::precompile::run(&policies).await,
        Command::Man(man) => crate::man::run(&man),
        Command::CompilePolicy(_) | Command::Demo(_) => Exit::Bug.into(),
    }
}

async fn kubelet_plugin(args: &PluginArgs, format: Format, screen: &Arc<Screen>) -> ExitCode {
    let mut options = match options::plugin(args) {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    options.format = format;
    let lines = Arc::clone(screen);
    let lines_to: scupper_runner::reporter::Output = Arc::new(move || Box::new(lines.lines()));
    let signals = Signals::new();
    // It may have to wait for the cluster first.
    let started = tokio::select! {
        started = KubeletPlugin::start_with_output(options, lines_to) => started,
        // What it has begun is taken back: a policy that is being compiled is not what it died of.
        () = signals.came(1) => return Exit::Done.into(),
    };
    let plugin = match started {
        Ok(plugin) => plugin,
        Err(error) => return driver_failed(&error),
    };
    match plugin.run_until(signals.came(1)).await {
        Ok(()) => Exit::Done.into(),
        Err(error) => driver_failed(&error),
    }
}

async fn clean_up(cleanup: &CleanupArgs, output: Output) -> ExitCode {
    let options = CleanupOptions {
        connection: cleanup.cluster.connection(),
        node: cleanup.node_name.clone(),
        driver: cleanup.driver_name.clone(),
        lease_namespace: cleanup.lease_namespace.clone(),
    };
    match use_cases::cleanup(options).await {
        Ok(CleanedUp { removed, left }) => {
            let text = match output.format() {
                Format::Json => output.document(&serde_json::json!({ "removed": removed, "left": left })),
                Format::Human if removed.is_empty() && left.is_empty() => {
                    format!("nothing of ours is left on {}", cleanup.node_name)
                }
                Format::Human => {
                    let removed = removed.iter().map(|what| format!("removed {what}"));
                    let left = left.iter().map(|what| format!("left    {what}"));
                    removed.chain(left).collect::<Vec<_>>().join("\n")
                }
            };
            print(&text);
            Exit::Done.into()
        }
        Err(error) => failed(&error),
    }
}
