//! What can be typed after `scupper config`.

use std::path::PathBuf;

use clap::Subcommand;

const CHECK_EXAMPLES: &str = "\
Examples:
  scupper config check scupper.yaml
  scupper config check scupper.yaml --policies     also loads the policies that it names";
const SCHEMA_EXAMPLES: &str = "\
Examples:
  scupper config schema >scupper.schema.json       for an editor";

/// What to do with configuration files.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Report every problem of a configuration file with line, column and field
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Print the JSON Schema of configuration files
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
}

/// `scupper config check`
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Configuration file
    pub file: PathBuf,
    /// Also load every policy: its module must exist and match its digest, it must have every capability that it needs,
    /// and its configuration check must pass; needs no cluster
    #[arg(long)]
    pub policies: bool,
    /// Directory for compiled policies; must be private to this user
    #[arg(long, value_name = "DIR", env = "SCUPPER_CACHE_DIR", hide_env_values = true)]
    pub policy_cache: Option<PathBuf>,
}
