//! Exactly what can be typed. Nothing is checked here beyond its form.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, Subcommand, ValueEnum};
use scupper_cluster::{Connection, LEASE_NAMESPACE};

use crate::compile::CompileArgs;
use crate::completion::CompletionArgs;
use crate::config::ConfigCommand;
use crate::dev_program::Forwarded;
use crate::doctor::DoctorArgs;
use crate::forecast::ForecastArgs;
use crate::man::ManArgs;
use crate::node::{CancelArgs, DrainNodesArgs, DryRun, PlanArgs, StatusArgs, UncordonArgs};
use crate::output::OutputArgs;
use crate::policy::PolicyCommand;
use crate::precompile::PrecompileArgs;
use crate::recordings::{DrainsArgs, DriverRecordArgs, ReplayArgs, ReportArgs};
use crate::setting_flags::{Driver, SettingFlags};

/// Drain Kubernetes nodes, with your own policies as WebAssembly plugins
#[derive(Debug, Parser)]
#[command(version, name = "scupper", after_help = EXAMPLES_AND_EXIT_CODES, max_term_width = 100)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How it prints.
    #[command(flatten)]
    pub output: OutputArgs,
}

// Headings in `--help`.
pub(super) const CONNECTION: &str = "Connection";
pub(super) const DRIVER: &str = "Driver";
pub(super) const EVICTIONS: &str = "Pods and evictions";
pub(super) const POLICIES: &str = "Policies";

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  scupper plan worker-1         what a drain would do
  scupper drain worker-1
  scupper status                the nodes that drain, are drained, wait or have failed
  scupper uncordon worker-1

Exit codes:
   0  done
   2  usage error
   3  configuration error: a flag's value, the configuration file, a policy
   4  cluster error: API server unreachable or refusing, or unknown node
   5  drain failed: pods may not leave, cancelled, or could not be carried out; also of a plan that would not end
   6  deadline passed
   7  a policy refused the drain or failed, or must undo its part and is not loaded
   8  found: a problem (`scupper doctor`), or a difference (`scupper replay`, `policy diff`)
   9  detached: the driver continues the drain
  70  a bug in Scupper";

const CONFIG_EXAMPLES: &str = "\
Examples:
  scupper config check scupper.yaml --policies     also loads each policy
  scupper config schema";
const POLICY_EXAMPLES: &str = "\
Examples:
  scupper policy new my-policy && cd my-policy
  scupper policy test                              its scenarios, without a cluster
  scupper policy build
  scupper policy list                              what the driver on this node runs";
const PLAN_EXAMPLES: &str = "\
Examples:
  scupper plan worker-1                     exit code 5: it would be refused, or not end
  scupper plan -l pool=gpu --as-driver      as the drivers of these nodes would drain them";
const FORECAST_EXAMPLES: &str = "\
Examples:
  scupper forecast worker-1 --timeout 30m                   how often this limit would hold
  scupper forecast worker-1 worker-2                        also pods that find no node then
  scupper forecast -l pool=gpu --recordings recordings/     with the times of recorded drains";
const DRAIN_EXAMPLES: &str = "\
Examples:
  scupper drain worker-1 --ignore-daemonsets
  scupper drain -l pool=gpu --parallel 2    two nodes at once, all cordoned first
  scupper drain worker-1 --dry-run=server   also asks about each eviction; changes nothing";
const UNCORDON_EXAMPLES: &str = "\
Examples:
  scupper uncordon worker-1
  scupper uncordon worker-1 --force         also a cordon that is not Scupper's";
const CANCEL_EXAMPLES: &str = "\
Examples:
  scupper cancel worker-1                   whoever started the drain, and wherever it runs";
const STATUS_EXAMPLES: &str = "\
Examples:
  scupper status                            which nodes drain, are drained, wait or have failed
  scupper status worker-1 --watch           what each pod waits for, as it changes";
const DOCTOR_EXAMPLES: &str = "\
Examples:
  scupper doctor                            before the installation
  scupper doctor --node worker-1 --config scupper.yaml";
const DRAINS_EXAMPLES: &str = "\
Examples:
  scupper drains                            drains of the driver on this node
  scupper drains --recordings recordings/   drains recorded with --record recordings/";
const REPLAY_EXAMPLES: &str = "\
Examples:
  scupper replay recordings/*.gz            exit code 8: this version decides differently
  scupper replay drain.gz --config new.yaml --policy slurm=new.wasm
                                            exit code 8: the drain would go differently";
const REPORT_EXAMPLES: &str = "\
Examples:
  scupper report drain.jsonl.gz             why it took so long, as Markdown
  scupper report worker-1 worker-2 --html report.html
  scupper report drain.jsonl.gz -o wide     with every pod";
const CLEANUP_EXAMPLES: &str = "\
Examples:
  scupper cleanup --node-name worker-1      remove what the driver left on this node";

const PLUGIN_EXAMPLES: &str = "\
Examples:
  scupper kubelet-plugin --node-name worker-1 --config scupper.yaml";
const VERSION_EXAMPLES: &str = "\
Examples:
  scupper version
  kubectl -n scupper exec daemonset/scupper -- scupper version";
const COMPLETION: &str = "\
Examples:
  Bash:        source <(scupper completion bash)
  Zsh:         source <(scupper completion zsh)
  Fish:        scupper completion fish | source
  PowerShell:  scupper completion powershell | Out-String | Invoke-Expression
  kubectl:     scupper completion kubectl >DIR/kubectl_complete-scupper
               with DIR in the PATH; make it executable";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what a drain would do; change nothing
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Forecast how long a drain would take and what it would wait for; change nothing
    #[command(after_help = FORECAST_EXAMPLES)]
    Forecast(ForecastArgs),
    /// Drain nodes, by the driver on the node if there is one, otherwise from here
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain(DrainNodesArgs),
    /// Return nodes to service: run the policies' hooks and lift the cordon
    #[command(after_help = UNCORDON_EXAMPLES)]
    Uncordon(UncordonArgs),
    /// Stop a drain wherever it runs, and lift Scupper's cordon
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(CancelArgs),
    /// Show cordon, drain, hooks, what each pod waits for, and the next command to type
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// List the recorded drains of a driver, or write one of the recordings
    #[command(after_help = DRAINS_EXAMPLES)]
    Drains(DrainsArgs),
    /// Repeat recorded drains without a cluster, and compare what the engine commands
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    /// Tell what recorded drains waited for, as Markdown, as a page or as a picture
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Check a cluster before the driver is installed; change nothing
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Check a configuration file, or print its schema
    #[command(subcommand, after_help = CONFIG_EXAMPLES)]
    Config(ConfigCommand),
    /// Write, build, test and inspect policies
    #[command(subcommand, after_help = POLICY_EXAMPLES)]
    Policy(PolicyCommand),
    /// Drain a node of a simulated cluster; needs no Kubernetes
    Demo(Forwarded),
    /// Run the driver: a kubelet plugin that drains its node when a LifecycleEvent asks for it
    #[command(after_help = PLUGIN_EXAMPLES)]
    KubeletPlugin(PluginArgs),
    /// Remove the driver's transitions and annotation of a node, before you uninstall
    #[command(after_help = CLEANUP_EXAMPLES)]
    Cleanup(CleanupArgs),
    /// Print the version of the program, of its image, and of the interfaces that it speaks
    #[command(after_help = VERSION_EXAMPLES)]
    Version,
    /// Print a shell's completion script
    #[command(after_help = COMPLETION)]
    Completion(CompletionArgs),
    /// Write the man pages
    #[command(hide = true)]
    Man(ManArgs),
    /// Write native code of policies for an image
    #[command(hide = true)]
    Precompile(PrecompileArgs),
    /// Compile one policy from standard input to standard output (the driver runs this as a child of its own)
    #[command(hide = true)]
    CompilePolicy(CompileArgs),
}

impl Command {
    /// How it reaches the cluster, if it does.
    pub(super) const fn cluster(&self) -> Option<&ClusterArgs> {
        match self {
            Self::Plan(args) => Some(&args.cluster),
            Self::Forecast(args) => Some(&args.cluster),
            Self::Drain(args) => Some(&args.cluster),
            Self::Uncordon(args) => Some(&args.cluster),
            Self::Cancel(args) => Some(&args.cluster),
            Self::Status(args) => Some(&args.cluster),
            Self::Doctor(args) => Some(&args.cluster),
            Self::KubeletPlugin(args) => Some(&args.cluster),
            Self::Cleanup(args) => Some(&args.cluster),
            Self::Drains(_)
            | Self::Replay(_)
            | Self::Report(_)
            | Self::Config(_)
            | Self::Policy(_)
            | Self::Demo(_)
            | Self::Version
            | Self::Completion(_)
            | Self::Man(_)
            | Self::Precompile(_)
            | Self::CompilePolicy(_) => None,
        }
    }

    /// `scupper-dev` does it.
    pub(super) const fn is_of_dev_program(&self) -> bool {
        match self {
            Self::Demo(_) => true,
            Self::Policy(command) => command.is_of_dev_program(),
            Self::Replay(replay) => replay.has_changes(),
            _ => false,
        }
    }

    /// It prints results, which can be YAML, and not a stream of steps.
    pub(super) fn prints_results(&self) -> bool {
        match self {
            Self::Plan(_)
            | Self::Forecast(_)
            | Self::Status(_)
            | Self::Doctor(_)
            | Self::Cancel(_)
            | Self::Cleanup(_)
            | Self::Drains(_)
            | Self::Replay(_)
            | Self::Report(_)
            | Self::Version => true,
            Self::Drain(args) => args.dry_run != DryRun::None,
            _ => false,
        }
    }
}

/// How to reach the cluster, with the flags of `kubectl`.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = CONNECTION)]
pub struct ClusterArgs {
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Cluster of the kubeconfig [default: the context's]
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// User of the kubeconfig [default: the context's]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// User to impersonate
    #[arg(long = "as", value_name = "USER")]
    pub as_user: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long, value_name = "GROUP", requires = "as_user")]
    pub as_group: Vec<String>,
    /// Limit for one request, for example 10s; 0: no limit [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = crate::options::request_timeout)]
    pub request_timeout: Option<Duration>,
    /// Accept any certificate of the API server; insecure [default: false]
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        hide_default_value = true,
        hide_possible_values = true,
        value_name = "BOOL"
    )]
    pub insecure_skip_tls_verify: bool,
}

impl ClusterArgs {
    pub(super) fn connection(&self) -> Connection {
        Connection {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
            impersonate: self.as_user.clone(),
            impersonate_groups: self.as_group.clone(),
            request_timeout: self.request_timeout,
            insecure: self.insecure_skip_tls_verify,
        }
    }
}

/// Which policies to load.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = POLICIES)]
pub struct PolicyArgs {
    /// Configuration file; see `scupper config`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policies", "grants", "policy_config"])]
    pub config: Option<PathBuf>,
    /// Policy to load; may be repeated, each gets the plan of the one before
    #[arg(long = "policy", value_name = "NAME=FILE")]
    pub policies: Vec<String>,
    /// Capability for a policy, for example slurm=node-annotations:nodeset.slinky.slurm.net/
    #[arg(long = "grant", value_name = "NAME=CAPABILITY:TARGET")]
    pub grants: Vec<String>,
    /// Setting of a policy, for example slurm.poll-seconds=10
    #[arg(long = "policy-config", value_name = "NAME.KEY=VALUE")]
    pub policy_config: Vec<String>,
    /// Directory for compiled policies; must be private to this user
    #[arg(long, value_name = "DIR", env = "SCUPPER_CACHE_DIR", hide_env_values = true)]
    pub policy_cache: Option<PathBuf>,
    /// Directory for the last good policies and a socket; must be private to this user [default: `state` in
    /// --policy-cache]
    #[arg(long, value_name = "DIR", env = "SCUPPER_STATE_DIR", hide_env_values = true)]
    pub state_dir: Option<PathBuf>,
}

impl PolicyArgs {
    /// Whether a file or flags name any policy.
    pub(crate) const fn loads_any(&self) -> bool {
        self.config.is_some() || !self.policies.is_empty()
    }
}

/// `scupper kubelet-plugin`
#[derive(Debug, clap::Args)]
pub struct PluginArgs {
    /// Node that this driver runs on
    #[arg(long, env = "NODE_NAME", hide_env_values = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub node_name: String,
    /// Name of the driver, to which LifecycleTransitions refer
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    #[command(flatten)]
    pub drain: SettingFlags<Driver>,
    /// Who claims LifecycleEvents: kubelet; self (the driver, unless the kubelet registers it); auto (the driver once
    /// the kubelet has said that it cannot)
    #[arg(long, value_enum, default_value_t = Claim::Auto, hide_possible_values = true, value_name = "auto|kubelet|self")]
    pub claim: Claim,
    /// Transitions to publish: one for all nodes, or one for this node only
    #[arg(long, value_enum, default_value_t = ScopeArg::AllNodes, hide_possible_values = true, value_name = "all-nodes|node")]
    pub scope: ScopeArg,
    /// Account that evicts pods: the driver's own or, with Kubernetes 1.36 or later, the node's, which may evict its
    /// own pods only (deploy/components/evict-as-node)
    #[arg(long, value_enum, default_value_t = EvictAs::Driver, hide_possible_values = true, value_name = "driver|node")]
    pub evict_as: EvictAs,
    /// How long to keep its newest ten finished LifecycleEvents, for `kubectl wait`
    #[arg(long, default_value = "0", value_name = "DURATION")]
    pub keep_finished: String,
    /// Flags of `scupper drain` to obey even if they widen this driver's configuration: force, delete-emptydir-data,
    /// ignore-daemonsets, local-data, grace-period, timeout, at-deadline; separated by commas [default: none]
    #[arg(long, value_name = "FLAGS")]
    pub allow_overrides: Option<String>,
    /// Namespace of the per-node Leases that prevent concurrent drains [default: the driver's]
    #[arg(long, value_name = "NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// Root directory of the kubelet
    #[arg(long, default_value = "/var/lib/kubelet", value_name = "DIR")]
    pub kubelet_root: PathBuf,
    /// Address for /metrics, /healthz and /readyz: 9090 for this machine only, [::]:9090 for all [default: none]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = crate::address::listen)]
    pub metrics_address: Option<SocketAddr>,
    /// OpenTelemetry collector for traces over OTLP, such as http://127.0.0.1:4318; variables of OpenTelemetry
    /// (OTEL_EXPORTER_OTLP_ENDPOINT, ...) also count [default: none]
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    #[command(flatten)]
    pub recordings: DriverRecordArgs,
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Whose transitions are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// Shared by the drivers of all nodes.
    AllNodes,
    /// This node's own.
    Node,
}

/// As whom pods are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EvictAs {
    /// The driver's own account.
    Driver,
    /// The node that the driver runs on.
    Node,
}

/// Who claims LifecycleEvents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Claim {
    /// The kubelet if it can, else this driver.
    Auto,
    /// Only the kubelet.
    Kubelet,
    /// This driver, unless the kubelet registers it.
    #[value(name = "self")]
    Driver,
}

/// `scupper cleanup`
#[derive(Debug, clap::Args)]
pub struct CleanupArgs {
    /// Node whose transitions and annotation are removed, and whose drains' changes are taken back
    #[arg(long, env = "NODE_NAME", hide_env_values = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub node_name: String,
    /// Name of the driver
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    /// Namespace of the per-node Leases that prevent concurrent drains: the driver's
    #[arg(long, default_value = LEASE_NAMESPACE, value_name = "NAMESPACE")]
    pub lease_namespace: String,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}
