//! What can be typed after `scupper policy`. What authors type is read by `scupper-dev`.

use std::path::PathBuf;

use clap::Subcommand;

use crate::dev_program::Forwarded;

const LIST_EXAMPLES: &str = "\
Examples:
  scupper policy list --state-dir DIR
  kubectl -n scupper exec POD -- scupper policy list";
const ROLLBACK_EXAMPLES: &str = "\
Examples:
  scupper policy rollback slurm --state-dir DIR
  kubectl -n scupper exec POD -- scupper policy rollback slurm";
const PROMOTE_EXAMPLES: &str = "\
Examples:
  scupper policy promote jobs-next --config scupper.yaml | patch scupper.yaml";

/// What to do with policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Create the crate of a new policy; it builds, and its tests and scenarios pass
    New(Forwarded),
    /// Build the crate of a policy into a component
    Build(Forwarded),
    /// Run the scenarios of a policy: drains of a simulated cluster; needs no Kubernetes
    Test(Forwarded),
    /// Check whether a driver would load a policy, and report every problem
    Check(Forwarded),
    /// Show what a policy exports, needs and may use
    Inspect(Forwarded),
    /// Run a policy on a snapshot of a cluster, as `kubectl get node,pods,pdb -A -o yaml` prints it; change nothing
    Run(Forwarded),
    /// Play recorded drains with two editions of a policy, and print what differs as Markdown
    Diff(Forwarded),
    /// Measure a policy: time for a plan and for a hook step, and use of its limits
    Bench(Forwarded),
    /// List the policies of the driver on this node: active, rejected, and why
    #[command(after_help = LIST_EXAMPLES)]
    List(DriverArgs),
    /// Return to the previous revision of a policy; the present one stays inactive until it changes
    #[command(after_help = ROLLBACK_EXAMPLES)]
    Rollback(RollbackArgs),
    /// Print the change of a configuration file that makes a shadow policy active; change nothing
    #[command(after_help = PROMOTE_EXAMPLES)]
    Promote(PromoteArgs),
}

impl PolicyCommand {
    /// `scupper-dev` does it.
    pub(crate) const fn is_of_dev_program(&self) -> bool {
        !matches!(self, Self::List(_) | Self::Rollback(_) | Self::Promote(_))
    }
}

/// `scupper policy list`
#[derive(Debug, clap::Args)]
pub struct DriverArgs {
    /// State directory of the driver, as in its --state-dir
    #[arg(long, value_name = "DIR", env = "SCUPPER_STATE_DIR", hide_env_values = true)]
    pub state_dir: Option<PathBuf>,
    /// Its --policy-cache, if the state directory is inside it
    #[arg(long, value_name = "DIR", env = "SCUPPER_CACHE_DIR", hide_env_values = true)]
    pub policy_cache: Option<PathBuf>,
}

/// `scupper policy promote`
#[derive(Debug, clap::Args)]
pub struct PromoteArgs {
    /// Name of the shadow policy in the configuration
    pub name: String,
    /// Configuration file; it is not written
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
}

/// `scupper policy rollback`
#[derive(Debug, clap::Args)]
pub struct RollbackArgs {
    /// Name of the policy in the configuration
    pub name: String,
    #[command(flatten)]
    pub driver: DriverArgs,
}
