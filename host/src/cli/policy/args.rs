//! What can be typed after `scupper policy`.

use std::path::PathBuf;

use clap::Subcommand;

/// What to do with policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Begin a new policy: a crate that builds, and whose tests and scenarios pass.
    New(NewArgs),
    /// Build the crate of a policy into a component.
    Build(BuildArgs),
    /// Play the scenarios of a policy: a drain on a cluster in memory, in a time of its own. Needs no Kubernetes.
    Test(TestArgs),
    /// How the policies of the driver on this node stand: what is active, and what was not taken and why.
    List(DriverArgs),
    /// Go back to the edition of a policy that was active before. The one that is active now does not come back by
    /// itself; a new one does.
    Rollback(RollbackArgs),
}

impl PolicyCommand {
    /// It says itself what is worth knowing; the log would only repeat it.
    pub(in crate::cli) const fn is_quiet(&self) -> bool {
        matches!(self, Self::Test(_))
    }
}

/// `scupper policy new`
#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// Its name, which is the crate's, too.
    pub name: String,
    /// It plans: which pods leave, and in which order. That is what it does unless you say otherwise.
    #[arg(long)]
    pub planner: bool,
    /// It acts around a drain, and can hold it up.
    #[arg(long)]
    pub hooks: bool,
    /// It plans and acts.
    #[arg(long)]
    pub both: bool,
    /// The folder in which the crate's own folder is made.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
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

/// `scupper policy test`
#[derive(Debug, clap::Args)]
pub struct TestArgs {
    /// Crates, whose scenarios are in `scenarios/`, folders of scenarios, or single ones.
    #[arg(default_value = ".", value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The component that the scenarios are about. Without it the crates that they are in are built.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Tell the whole story of every drain.
    #[arg(long)]
    pub story: bool,
}

/// `scupper policy list`
#[derive(Debug, clap::Args)]
pub struct DriverArgs {
    /// The state directory of the driver, as it was started with.
    #[arg(long, value_name = "DIR", env = "SCUPPER_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
    /// Its directory of compiled policies, when the state directory is the one in there.
    #[arg(long, value_name = "DIR", env = "SCUPPER_CACHE_DIR")]
    pub policy_cache: Option<PathBuf>,
}

/// `scupper policy rollback`
#[derive(Debug, clap::Args)]
pub struct RollbackArgs {
    /// The policy, as the operator calls it.
    pub name: String,
    #[command(flatten)]
    pub driver: DriverArgs,
}
