//! `cargo xtask`: the repository's own commands.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line prints its output"
)]

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Parser;
use xtask::{policies, reference, tidy, workspace::Workspace};

/// The repository's own commands.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Command {
    /// Builds the policies under plugins/ and examples/policies/ into components.
    Policies {
        /// Only this policy; may be given more than once.
        #[arg(short, long = "policy", value_name = "NAME")]
        policies: Vec<String>,
        /// Folder for the components [default: `policies` in the target directory].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Writes wit/REFERENCE.md from the comments of the WIT.
    Reference,
    /// Checks the house rules.
    Tidy,
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let workspace = Workspace::read()?;
    match command {
        Command::Policies { policies: names, out } => {
            for built in policies::build(&workspace, &names, out.as_deref())? {
                println!(
                    "{:<16} {:>7} bytes  sha256:{}  {}",
                    built.name,
                    built.size,
                    built.sha256,
                    built.file.display()
                );
            }
        }
        Command::Reference => {
            let page = reference::generate(&workspace.root)?;
            let file = workspace.root.join(reference::FILE);
            std::fs::write(&file, page).with_context(|| format!("write {}", file.display()))?;
        }
        Command::Tidy => {
            let sources = tidy::read(&workspace.root)?;
            let findings = tidy::check(&sources);
            for finding in &findings {
                println!("{finding}");
            }
            if !findings.is_empty() {
                bail!("{} broken house rules in {} files", findings.len(), sources.len());
            }
            println!("{} files keep the house rules", sources.len());
        }
    }
    Ok(())
}
