//! The process around a command: its log, its runtime, and the end, when everything that was printed has been written.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use scupper_screen::Screen;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::exit::Exit;
use crate::output::{ColourMode, DEFAULT_LOG, fail};
use crate::signals::{self, Signals};

/// Runs a command to its end. `last_lines`: how long the reader of standard output and of the log may take for the last
/// lines.
pub fn run_process(
    log: &str,
    colours: ColourMode,
    last_lines: Duration,
    command: impl AsyncFnOnce(&Arc<Screen>) -> ExitCode,
) -> ExitCode {
    let screen = Arc::new(Screen::of_process());
    scupper_screen::colour_output(colours.applies(&std::io::stdout()));
    log_to_stderr(log, colours, &screen);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error, Exit::Bug),
    };
    runtime.block_on(async {
        if screen.is_terminal() {
            signals::forget_when_stopped(&screen);
        }
        let code = command(&screen).await;
        tokio::select! {
            () = screen.written() => {}
            () = tokio::time::sleep(last_lines) => {}
            () = Signals::new().came(1) => {}
        }
        code
    })
}

fn log_to_stderr(filter: &str, colours: ColourMode, screen: &Arc<Screen>) {
    let is_of_default = filter == DEFAULT_LOG;
    let (filter, problem) = match filter.parse::<Targets>() {
        Ok(filter) => (filter, None),
        Err(error) => (DEFAULT_LOG.parse().unwrap_or_default(), Some(error)),
    };
    // The log may be a file in a folder that is watched: a line for each change there would be a change there.
    let filter = filter.with_target("notify", LevelFilter::INFO);
    let writer = Arc::clone(screen);
    let lines = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(move || writer.log())
        .with_ansi(colours.applies(&std::io::stderr()));
    // For a person at a terminal, times and names of modules are in the way.
    match is_of_default && std::io::stderr().is_terminal() {
        true => lines
            .without_time()
            .with_target(false)
            .finish()
            .with(filter)
            .init(),
        false => lines.finish().with(filter).init(),
    }
    if let Some(error) = problem {
        tracing::warn!(%error, "--log: invalid filter; using warn,scupper=info");
    }
}
