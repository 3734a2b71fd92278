//! `scupper policy ...` and `scupper demo` for people who write policies: `scupper-dev` does them, a program of its own,
//! because a driver needs neither a toolchain nor a simulated cluster. It stands beside this program or in the PATH.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::exit::Exit;
use crate::output::fail;

/// Its name.
const PROGRAM: &str = "scupper-dev";

/// What was typed for it. It reads the whole command line itself.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Forwarded {
    /// Its own arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub args: Vec<OsString>,
}

/// Why it does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DevProgramError {
    #[error(
        "this command is part of {PROGRAM}, which is neither beside this program nor in the PATH; the archive of a \
         release has both programs, and `cargo install --locked --path host/scupper-dev` in a checkout of Scupper \
         builds it; both also compile policies in Python and JavaScript, for which that of `make demo` is too slow"
    )]
    Missing,
    #[error("cannot start {}", .0.display())]
    Start(PathBuf, #[source] std::io::Error),
}

/// Becomes `scupper-dev`.
pub(crate) fn run() -> ExitCode {
    fail(&start(), Exit::Config)
}

/// Becomes `scupper-dev` to complete its own commands, if it is there.
pub(crate) fn complete() {
    let _reason = start();
}

/// Becomes `scupper-dev`, with the same arguments; returns only if that fails.
fn start() -> DevProgramError {
    match find() {
        Some(program) => {
            let failed = Command::new(&program).args(std::env::args_os().skip(1)).exec();
            DevProgramError::Start(program, failed)
        }
        None => DevProgramError::Missing,
    }
}

/// Beside this program first: the two were built together.
fn find() -> Option<PathBuf> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|own| Some(own.parent()?.join(PROGRAM)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    beside.into_iter().chain(in_path).find(|file| file.is_file())
}
