//! What can be typed after `scupper policy`.

use std::path::PathBuf;

use clap::Subcommand;

/// What to do with policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Build the crate of a policy into a component.
    Build(BuildArgs),
}

/// `scupper policy build`
#[derive(Debug, clap::Args)]
pub struct BuildArgs {
    /// The folder of the crate.
    #[arg(default_value = ".", value_name = "DIR")]
    pub crate_dir: PathBuf,
    /// The cargo profile. The one named `policy` is made up when the crate does not define it: small, with the names of
    /// functions.
    #[arg(long, default_value = scupper_builder::PROFILE, value_name = "NAME")]
    pub profile: String,
    /// Where the component goes [default: `policies` in the target directory].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
