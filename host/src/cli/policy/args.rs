//! What can be typed after `scupper policy`.

use std::path::PathBuf;

use clap::Subcommand;
use scupper_engine::HookPhase;

use crate::app::author::Said;

/// What to do with policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Begin a new policy: a crate that builds, and whose tests and scenarios pass.
    New(NewArgs),
    /// Build the crate of a policy into a component.
    Build(BuildArgs),
    /// Play the scenarios of a policy: a drain on a cluster in memory, in a time of its own. Needs no Kubernetes.
    Test(TestArgs),
    /// Take a policy through everything that a driver does before it loads it, and tell all that is wrong with it.
    Check(SaidArgs),
    /// Show what a policy says of itself, what it wants, and what it may use.
    Inspect(SaidArgs),
    /// Ask a policy once, about a node as `kubectl get node,pods,pdb -A -o yaml` printed it: its plan, or the steps of
    /// a hook. Nothing real is changed.
    Run(RunArgs),
    /// Measure a policy: how long it plans and how long a step takes, and what it used of its limits.
    Bench(BenchArgs),
    /// How the policies of the driver on this node stand: what is active, and what was not taken and why.
    List(DriverArgs),
    /// Go back to the edition of a policy that was active before. The one that is active now does not come back by
    /// itself; a new one does.
    Rollback(RollbackArgs),
}

impl PolicyCommand {
    /// It says itself what is worth knowing; the log would only repeat it.
    pub(in crate::cli) const fn is_quiet(&self) -> bool {
        matches!(self, Self::Test(_) | Self::Bench(_))
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

/// Which policy, and what the operator says of it.
#[derive(Debug, clap::Args)]
pub struct SaidArgs {
    /// The component.
    pub file: PathBuf,
    /// A configuration file (`scupper.yaml`) that says what the policy is given.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Which policy of the configuration file; without it the one whose module the component is.
    #[arg(long)]
    pub name: Option<String>,
    /// Give it a capability, for instance node-annotations:example.com/
    #[arg(long = "grant", value_name = "CAPABILITY:TARGET")]
    pub grants: Vec<String>,
    /// Configure it.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

impl From<&SaidArgs> for Said {
    fn from(args: &SaidArgs) -> Self {
        Self {
            file: args.file.clone(),
            config: args.config.clone(),
            name: args.name.clone(),
            grants: args.grants.clone(),
            settings: args.settings.clone(),
        }
    }
}

/// `scupper policy run`
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub policy: SaidArgs,
    /// The snapshot, in YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pub on: PathBuf,
    /// Which of its nodes.
    #[arg(long)]
    pub node: Option<String>,
    /// Take the steps of this phase's hook instead of planning, for instance before-drain.
    #[arg(long, value_parser = phase, conflicts_with = "drain")]
    pub phase: Option<HookPhase>,
    /// The wave, or the pod as NAMESPACE/NAME, that the hook is called for; without it the node.
    #[arg(long, requires = "phase")]
    pub of: Option<String>,
    /// How many steps at most.
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    pub steps: usize,
    /// Play the whole drain, in a time of its own; it has a day.
    #[arg(long)]
    pub drain: bool,
}

/// `scupper policy bench`
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    #[command(flatten)]
    pub policy: SaidArgs,
    /// How many pods there are on the node.
    #[arg(long, default_value_t = 110, value_name = "COUNT")]
    pub pods: usize,
    /// How often each function is called.
    #[arg(long, default_value_t = 200, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
}

fn phase(text: &str) -> Result<HookPhase, String> {
    HookPhase::from_name(text).ok_or_else(|| {
        let names = HookPhase::ALL.map(|phase| phase.to_string());
        format!("there are {}", names.join(", "))
    })
}
