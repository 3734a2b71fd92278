//! The command line. `scupper` passes its own on unchanged, so the help names `scupper`.

use clap::{Parser, Subcommand};
use scupper::{CompileArgs, OutputArgs, ReplayArgs};

use crate::demo::DemoArgs;
use crate::policy::PolicyCommand;

/// Write, build and test policies for Scupper, and watch drains of a simulated cluster
#[derive(Debug, Parser)]
#[command(version, name = "scupper", bin_name = "scupper", after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  scupper policy new my-policy && cd my-policy
  scupper policy test
  scupper demo --slurm slurm.wasm";
const POLICY_EXAMPLES: &str = "\
Examples:
  scupper policy new my-policy && cd my-policy
  scupper policy test                              its scenarios, without a cluster
  scupper policy build
  scupper policy check target/policies/my-policy.wasm";
const DEMO_EXAMPLES: &str = "\
Examples:
  scupper demo --slurm slurm.wasm           a drain that waits for jobs of Slurm
  scupper demo --slurm slurm.wasm --stuck   what holds three drains up";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write, build, test and inspect policies
    #[command(subcommand, after_help = POLICY_EXAMPLES)]
    Policy(PolicyCommand),
    /// Play recorded drains with other policies or settings
    // `scupper replay` has the help.
    #[command(hide = true)]
    Replay(ReplayArgs),
    /// Drain a node of a simulated cluster; needs no Kubernetes
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Print the versions of the program and of the interfaces that it speaks
    // As `scupper version`.
    #[command(hide = true)]
    Version,
    /// Compile one policy from standard input to standard output
    #[command(hide = true)]
    CompilePolicy(CompileArgs),
}

impl Command {
    /// It prints its own report; the log would only repeat it.
    pub(crate) const fn is_quiet(&self) -> bool {
        match self {
            Self::Demo(_) | Self::Replay(_) => true,
            Self::Policy(command) => command.is_quiet(),
            Self::Version | Self::CompilePolicy(_) => false,
        }
    }
}
