//! Man pages of all commands, from the same texts as `--help`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory as _;

use super::args::Args;
use super::exit::Exit;
use crate::output::fail;

/// `scupper man`
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Directory for the pages; is created
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Writes a page for each command.
pub(super) fn run(args: &ManArgs) -> ExitCode {
    let written = std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(Args::command(), &args.dir));
    match written {
        Ok(()) => Exit::Done.into(),
        Err(error) => fail(&error, Exit::Config),
    }
}
