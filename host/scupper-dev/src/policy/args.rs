//! The command line after `scupper policy`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use scupper_engine::HookPhase;

use crate::author::PolicyChoice;

const NEW_EXAMPLES: &str = "\
Examples:
  scupper policy new keep-training          a planner: which pods leave, and in which order
  scupper policy new tell-slurm --hooks     what must happen before they leave";
const BUILD_EXAMPLES: &str = "\
Examples:
  scupper policy build                      the crate in this directory
  scupper policy build keep-training --out dist/";
const TEST_EXAMPLES: &str = "\
Examples:
  scupper policy test                       all scenarios of the crate in this directory
  scupper policy test scenarios/gpu.yaml    one of them";
const CHECK_EXAMPLES: &str = "\
Examples:
  scupper policy check policy.wasm --config scupper.yaml
  scupper policy check policy.wasm --grant node-annotations:example.com/ --set poll-seconds=10";
const INSPECT_EXAMPLES: &str = "\
Examples:
  scupper policy inspect policy.wasm";
const RUN_EXAMPLES: &str = "\
Examples:
  kubectl get node,pods,pdb -A -o yaml > cluster.yaml
  scupper policy run policy.wasm --on cluster.yaml --node worker-1";
const DIFF_EXAMPLES: &str = "\
Examples:
  scupper policy diff old.wasm new.wasm --on recordings/    exit code 8: plans differ";
const BENCH_EXAMPLES: &str = "\
Examples:
  scupper policy bench policy.wasm --pods 500";

/// What to do with policies.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Create the crate of a new policy; it builds, and its tests and scenarios pass
    #[command(after_help = NEW_EXAMPLES)]
    New(NewArgs),
    /// Build the crate of a policy into a component
    #[command(after_help = BUILD_EXAMPLES)]
    Build(BuildArgs),
    /// Run the scenarios of a policy: drains of a simulated cluster; needs no Kubernetes
    #[command(after_help = TEST_EXAMPLES)]
    Test(TestArgs),
    /// Check whether a driver would load a policy, and report every problem
    #[command(after_help = CHECK_EXAMPLES)]
    Check(PolicyChoiceArgs),
    /// Show what a policy exports, needs and may use
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(PolicyChoiceArgs),
    /// Run a policy on a snapshot of a cluster, as `kubectl get node,pods,pdb -A -o yaml` prints it; change nothing
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Play recorded drains with two editions of a policy, and print what differs as Markdown
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(DiffArgs),
    /// Measure a policy: time for a plan and for a hook step, and use of its limits
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
}

impl PolicyCommand {
    /// It reports everything itself; the log would only repeat it.
    pub(crate) const fn is_quiet(&self) -> bool {
        matches!(self, Self::Test(_) | Self::Bench(_) | Self::Diff(_))
    }
}

/// `scupper policy new`
#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// Name of the policy and of its crate
    pub name: String,
    /// Generate a planner: which pods leave, in which order (the default)
    #[arg(long)]
    pub planner: bool,
    /// Generate hooks: actions around a drain, which can delay it
    #[arg(long)]
    pub hooks: bool,
    /// Generate a planner and hooks
    #[arg(long)]
    pub both: bool,
    /// Directory in which to create the crate's directory
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
}

/// `scupper policy build`
#[derive(Debug, clap::Args)]
pub(crate) struct BuildArgs {
    /// Directory of the crate
    #[arg(default_value = ".", value_name = "DIR")]
    pub crate_dir: PathBuf,
    /// Cargo profile; `policy` (small, with function names) exists even if the crate does not define it
    #[arg(long, default_value = scupper_builder::PROFILE, value_name = "NAME")]
    pub profile: String,
    /// Directory for the component [default: `policies` in the target directory]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `scupper policy test`
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Crates with scenarios in scenarios/, directories of scenarios, or single scenarios
    #[arg(default_value = ".", value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Component to test [default: build the crates of the scenarios]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Print every step of every drain
    #[arg(long)]
    pub story: bool,
}

/// The policy and the operator's settings for it.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyChoiceArgs {
    /// Component (.wasm)
    pub file: PathBuf,
    #[command(flatten)]
    pub options: PolicyOptions,
}

/// The operator's settings for a policy.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyOptions {
    /// Configuration file (scupper.yaml) with the grants and settings of the policy
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Policy of the configuration file [default: the one whose module is the component]
    #[arg(long)]
    pub name: Option<String>,
    /// Capability for the policy, for example node-annotations:example.com/; may be repeated
    #[arg(long = "grant", value_name = "CAPABILITY:TARGET")]
    pub grants: Vec<String>,
    /// Setting of the policy; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

impl From<&PolicyChoiceArgs> for PolicyChoice {
    fn from(args: &PolicyChoiceArgs) -> Self {
        args.options.with(&args.file)
    }
}

impl PolicyOptions {
    /// With this component.
    pub(crate) fn with(&self, file: &Path) -> PolicyChoice {
        PolicyChoice {
            file: file.to_owned(),
            config: self.config.clone(),
            name: self.name.clone(),
            grants: self.grants.clone(),
            settings: self.settings.clone(),
        }
    }
}

/// `scupper policy diff`
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// Component (.wasm) to compare with
    pub old: PathBuf,
    /// Changed component
    pub new: PathBuf,
    /// Recordings of drains, or directories of recordings
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    pub on: Vec<PathBuf>,
    #[command(flatten)]
    pub options: PolicyOptions,
}

/// `scupper policy run`
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub policy: PolicyChoiceArgs,
    /// Snapshot of the cluster, in YAML or JSON
    #[arg(long, value_name = "FILE")]
    pub on: PathBuf,
    /// Node of the snapshot [default: its only one]
    #[arg(long)]
    pub node: Option<String>,
    /// Run the hook of this phase instead of the planner, for example before-drain
    #[arg(long, value_parser = phase, conflicts_with = "drain")]
    pub phase: Option<HookPhase>,
    /// Wave, or pod as NAMESPACE/NAME, to call the hook for [default: the first one of the plan]
    #[arg(long, requires = "phase")]
    pub of: Option<String>,
    /// Maximum number of steps
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    pub steps: usize,
    /// Simulate the whole drain, for up to a simulated day
    #[arg(long)]
    pub drain: bool,
    /// Also evict pods without a controller, which otherwise block the plan
    #[arg(long)]
    pub force: bool,
}

/// `scupper policy bench`
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub policy: PolicyChoiceArgs,
    /// Number of pods on the node
    #[arg(long, default_value_t = 110, value_name = "COUNT")]
    pub pods: usize,
    /// Number of calls of each function
    #[arg(long, default_value_t = 200, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
}

fn phase(text: &str) -> Result<HookPhase, String> {
    HookPhase::from_name(text).ok_or_else(|| {
        let names = HookPhase::ALL.map(|phase| phase.to_string());
        format!("there are {}", names.join(", "))
    })
}
