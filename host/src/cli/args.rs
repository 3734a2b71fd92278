//! Exactly what can be typed. Nothing is checked here beyond its form.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use super::config::ConfigCommand;
use super::doctor::DoctorArgs;
use super::node::{CancelArgs, DrainNodesArgs, PlanArgs, StatusArgs, UncordonArgs};
use super::policy::PolicyCommand;
use crate::policy::{CompileLimits, CompileTask};

/// Drains Kubernetes nodes as your policies say.
///
/// A policy is a sandboxed WebAssembly component that decides which pods leave, in which order, and what must happen
/// first. Without policies Scupper drains as `kubectl drain` does, and waits until the pods are really gone.
#[derive(Debug, Parser)]
#[command(version, name = "scupper", after_help = EXIT_CODES)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Which log lines go to standard error, for instance `debug` or `scupper=debug,kube=info`.
    #[arg(
        long,
        global = true,
        env = "SCUPPER_LOG",
        default_value = DEFAULT_LOG,
        value_name = "FILTER"
    )]
    pub log: String,
    /// How results are printed.
    #[arg(long, short, global = true, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// What is logged unless the user says otherwise.
pub(super) const DEFAULT_LOG: &str = "warn,scupper=info";

const EXIT_CODES: &str = "\
Exit codes:
  0  done                              5  pods may not leave, or the drain failed
  2  the command line makes no sense   6  the deadline passed
  3  wrong configuration or policy     7  a policy refused or failed
  8  `scupper doctor` found something that keeps the driver from working
  4  the cluster cannot be reached, refuses us, or does not know the node
  9  left alone: the driver goes on with the drain, and nobody here waits for its end
  70 a bug in scupper";

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Lines for people.
    Human,
    /// JSON, one object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run on a node as a plugin of its kubelet and drain the node when a LifecycleEvent asks for it.
    KubeletPlugin(PluginArgs),
    /// Show what a drain of nodes would do, and change nothing.
    Plan(PlanArgs),
    /// Make the pods of nodes leave, as `kubectl drain` does and as the policies say. Where the driver runs on the node
    /// it does that, and this follows it.
    Drain(DrainNodesArgs),
    /// Give nodes back: run the policies' hooks and lift the cordon.
    Uncordon(UncordonArgs),
    /// Take back the drain of nodes, whoever carries it out: no further pod is asked to leave, and a cordon of
    /// Scupper's is lifted.
    Cancel(CancelArgs),
    /// Show where nodes stand: cordon, drain, hooks, what holds each pod, and the next command to type.
    Status(StatusArgs),
    /// Remove what the plugin leaves behind: its transitions of this node and its annotation. For uninstalling.
    Cleanup(CleanupArgs),
    /// Look at a cluster as the driver will find it, and say what is missing and what to do. Changes nothing.
    Doctor(DoctorArgs),
    /// Check the configuration file, and show what can be said in it.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Make policies, and look at those that there are.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Watch a drain on a simulated cluster. Needs no Kubernetes.
    Demo(DemoArgs),
    /// Compile one policy from standard input to standard output (the driver runs this as a child of its own).
    #[command(hide = true)]
    CompilePolicy(CompileArgs),
}

/// What the compiler may do and use; the driver says it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CompileArgs {
    /// The component may import the harmless part of WASI.
    #[arg(long)]
    wasi: bool,
    /// Bytes of address space.
    #[arg(long, default_value_t = CompileLimits::default().address_space)]
    address_space: u64,
    /// Bytes of memory besides those of this program.
    #[arg(long)]
    memory: Option<u64>,
    /// Seconds of CPU time.
    #[arg(long, default_value_t = CompileLimits::default().cpu_seconds)]
    cpu_seconds: u64,
    /// Bytes of native code.
    #[arg(long, default_value_t = CompileLimits::default().native_bytes)]
    native_bytes: u64,
    /// Wall-clock limit in seconds.
    #[arg(long, default_value_t = CompileLimits::default().wall.as_secs())]
    wall_seconds: u64,
    /// The process that ends this one by ending.
    #[arg(long)]
    parent: Option<i32>,
}

impl From<CompileArgs> for CompileTask {
    fn from(args: CompileArgs) -> Self {
        Self {
            wasi: args.wasi,
            limits: CompileLimits {
                address_space: args.address_space,
                cpu_seconds: args.cpu_seconds,
                native_bytes: args.native_bytes,
                wall: Duration::from_secs(args.wall_seconds),
            },
            memory: args.memory,
            parent: args.parent,
        }
    }
}

/// How to reach the cluster.
#[derive(Clone, Debug, clap::Args)]
pub struct ClusterArgs {
    /// The kubeconfig file. Without it: KUBECONFIG, ~/.kube/config, or in a pod its service account.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// Which policies to load.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PolicyArgs {
    /// Read policies, and what they are given, from a configuration file. See `scupper config`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policies", "grants", "policy_config"])]
    pub config: Option<PathBuf>,
    /// Load a policy from a file. May be given several times: each gets the plan of the one before.
    #[arg(long = "policy", value_name = "NAME=FILE")]
    pub policies: Vec<String>,
    /// Give a policy a capability that it wants, for instance slurm=node-annotations:nodeset.slinky.slurm.net/
    #[arg(long = "grant", value_name = "NAME=CAPABILITY:TARGET")]
    pub grants: Vec<String>,
    /// Configure a policy, for instance slurm.poll-seconds=10
    #[arg(long = "policy-config", value_name = "NAME.KEY=VALUE")]
    pub policy_config: Vec<String>,
    /// Where compiled policies are kept. Must be private to this user.
    #[arg(long, value_name = "DIR", env = "SCUPPER_CACHE_DIR")]
    pub policy_cache: Option<PathBuf>,
    /// Where the last good policies are kept for the next start, and where `scupper policy list` and `rollback` find
    /// the running driver. Must be private to this user [default: `state` in the directory of compiled policies].
    #[arg(long, value_name = "DIR", env = "SCUPPER_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
}

/// How pods are chosen and evicted. The flags mean what they mean for `kubectl drain`. What is not given is as the
/// configuration file says, or else the default.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DrainArgs {
    /// Overrides the pods' own grace period, in seconds; negative: their own [default: -1].
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS")]
    pub grace_period: Option<i64>,
    /// Let pods without a controller leave, too [default: false].
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub force: Option<bool>,
    /// Let pods with an emptyDir volume leave, too; what is in it is lost [default: true].
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub delete_emptydir_data: Option<bool>,
    /// Leave DaemonSet pods where they are instead of refusing the drain [default: true].
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub ignore_daemonsets: Option<bool>,
    /// How often pods of one controller are evicted that come back to the cordoned node, from 1 to 100; after that they
    /// stay, and the drain ends without them and names them [default: 1].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100), value_name = "TIMES")]
    pub returning_pod_evictions: Option<u32>,
    /// How long one eviction request may take before it is given up and asked again [default: 30s].
    #[arg(long, value_name = "DURATION")]
    pub eviction_timeout: Option<String>,
    /// How long the API server may refuse (401, 403) to write the node before the drain fails; 0: not at all
    /// [default: 2m].
    #[arg(long, value_name = "DURATION")]
    pub forbidden_timeout: Option<String>,
}

/// `scupper kubelet-plugin`
#[derive(Debug, clap::Args)]
pub struct PluginArgs {
    /// The driver's name, which LifecycleTransitions refer to.
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    /// The node that this driver runs on.
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node_name: String,
    /// How long a drain may take, from the moment the kubelet claims it; 0: as long as it takes [default: 5m].
    #[arg(long, value_name = "DURATION")]
    pub sla: Option<String>,
    /// Whose transitions are published: one for all nodes, or one for this node only.
    #[arg(long, value_enum, default_value_t = Scope::AllNodes)]
    pub scope: Scope,
    /// Who claims the LifecycleEvents of this node. With `auto` the kubelet says by itself whether it can, and the
    /// driver claims them only when it says that it cannot; while it says nothing, nobody does. `self` does not wait
    /// for its word, for nodes whose kubelet never looks for plugins: on any other node a kubelet that knows SLM and
    /// has not found the driver yet fails what the driver claims.
    #[arg(long, value_enum, default_value_t = Claim::Auto)]
    pub claim: Claim,
    /// As whom pods are evicted. `node`: as the node's own user, which the API server (1.36 or later, with NodeRestriction)
    /// lets evict the pods of that node alone; deploy/components/evict-as-node has the rights.
    #[arg(long, value_enum, default_value_t = EvictAs::Driver)]
    pub evict_as: EvictAs,
    /// How long the driver keeps a finished LifecycleEvent that it claimed itself, so that `kubectl wait` sees its end:
    /// the newest ten of the node at most, and none where the kubelet claims.
    #[arg(long, default_value = "0", value_name = "DURATION")]
    pub keep_finished: String,
    /// The namespace of the leases by which all who drain a node notice each other [default: the driver's own].
    #[arg(long, value_name = "NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// The kubelet's root directory.
    #[arg(long, default_value = "/var/lib/kubelet", value_name = "DIR")]
    pub kubelet_root: PathBuf,
    /// Serve metrics (OpenMetrics) at /metrics, and /healthz and /readyz for probes: 9090 for this machine alone,
    /// 0.0.0.0:9090 for everybody. Without it: nowhere.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = super::address::listen)]
    pub metrics_address: Option<SocketAddr>,
    /// Send each drain as a trace to a collector of OpenTelemetry, over OTLP: http://127.0.0.1:4318. Its path
    /// /v1/traces is put behind it. OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL, _HEADERS,
    /// OTEL_SERVICE_NAME and the like) say the rest, or all of it. Without an endpoint: nowhere.
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// What becomes of our own cordon when a drain fails, passes its deadline or is lost [default: keep].
    #[arg(long, value_enum)]
    pub on_failure: Option<OnFailure>,
    /// Flags of `scupper drain` that this driver obeys although they widen what its own flags and configuration allow,
    /// separated by commas: force, delete-emptydir-data, ignore-daemonsets, grace-period, timeout. Flags that narrow
    /// are always obeyed [default: none].
    #[arg(long, value_name = "FLAGS")]
    pub allow_overrides: Option<String>,
    #[command(flatten)]
    pub drain: DrainArgs,
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Whose transitions are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
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
    /// The kubelet, or nobody.
    Kubelet,
    /// This driver, unless the kubelet registers it.
    #[value(name = "self")]
    Driver,
}

/// What becomes of our own cordon when a drain does not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// It stays, as `kubectl drain` leaves it.
    Keep,
    /// It is lifted.
    Rollback,
}

/// `scupper cleanup`
#[derive(Debug, clap::Args)]
pub struct CleanupArgs {
    /// The node whose traces are removed.
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node_name: String,
    /// The driver's name.
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `scupper demo`
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// The policy that drains the Slurm pods, made by `make plugins`.
    #[arg(long, value_name = "FILE", required_unless_present = "openstack")]
    pub slurm: Option<PathBuf>,
    /// Watch drains that get stuck in three ways, and what `scupper status` says of them.
    #[arg(long, requires = "slurm", conflicts_with = "slurm_testbed")]
    pub stuck: bool,
    /// Drain a node of a real Slurm instead of a simulated one: the program that starts it,
    /// host/testbeds/slurm/slurm-testbed.
    #[arg(long, value_name = "PROGRAM", requires = "slurm")]
    pub slurm_testbed: Option<PathBuf>,
    /// The policy that empties a compute host of OpenStack, made by `make plugins`: drain the host of a real Nova.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "slurm",
        requires = "openstack_testbed"
    )]
    pub openstack: Option<PathBuf>,
    /// The program that starts the real OpenStack, host/testbeds/openstack/openstack-testbed.
    #[arg(long, value_name = "PROGRAM", requires = "openstack_state")]
    pub openstack_testbed: Option<PathBuf>,
    /// The folder that keeps it between demos.
    #[arg(long, value_name = "DIR")]
    pub openstack_state: Option<PathBuf>,
}
