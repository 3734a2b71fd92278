//! What can be typed after `scupper config`.

use std::path::PathBuf;

use clap::Subcommand;

/// What to do with configuration files.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say everything that is wrong with a configuration file, with line, column and field.
    Check(CheckArgs),
    /// Print the JSON Schema of configuration files.
    Schema,
}

/// `scupper config check`
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The configuration file.
    pub file: PathBuf,
    /// Load every policy, too: its module must be there and be what it should, it must have all that it wants, and it
    /// must like its configuration. No cluster is needed.
    #[arg(long)]
    pub policies: bool,
    /// Where compiled policies are kept. Must be private to this user.
    #[arg(long, value_name = "DIR", env = "SCUPPER_CACHE_DIR")]
    pub policy_cache: Option<PathBuf>,
}
