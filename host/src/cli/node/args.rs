//! What can be typed for nodes: names or a selector, and the flags of `kubectl drain`.

use std::num::NonZeroU16;

use clap::ValueEnum;

use crate::cli::args::{ClusterArgs, PolicyArgs};
use crate::cluster::LEASE_NAMESPACE;

/// `scupper plan`
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Plan as the driver on the node would: what neither a flag nor the configuration file says is by its defaults,
    /// which leave DaemonSet pods alone and delete what is in an emptyDir.
    #[arg(long)]
    pub as_driver: bool,
    #[command(flatten)]
    pub drain: KubectlArgs,
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `scupper drain`
#[derive(Debug, clap::Args)]
pub struct DrainNodesArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Only show what would be done. `server`: ask the API server for each eviction, too, without carrying it out.
    #[arg(
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = DryRun::None,
        default_missing_value = "client",
        hide_possible_values = true,
        value_name = "none|client|server"
    )]
    pub dry_run: DryRun,
    #[command(flatten)]
    pub shown: ShownArgs,
    /// How many nodes are drained at once.
    #[arg(long, default_value_t = NonZeroU16::MIN, value_name = "NUMBER")]
    pub parallel: NonZeroU16,
    /// Go on with a drain that another `scupper drain --local` has begun, for when that one was killed.
    #[arg(long)]
    pub take_over: bool,
    #[command(flatten)]
    pub hand_over: HandOverArgs,
    #[command(flatten)]
    pub drain: KubectlArgs,
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ShownArgs {
    /// In a terminal, show where each node stands below the lines, or for `status --watch` in their place, and keep that
    /// up to date. `plain`: lines alone, as anywhere else.
    #[arg(
        long,
        value_enum,
        default_value_t = Progress::Auto,
        hide_possible_values = true,
        value_name = "auto|plain"
    )]
    pub progress: Progress,
}

/// How what is under way is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// As a display in a terminal, as lines elsewhere.
    Auto,
    /// As lines.
    Plain,
}

/// Who does it.
#[derive(Clone, Debug, clap::Args)]
pub struct HandOverArgs {
    /// Do it from here, even where a driver could. Ctrl-C or SIGTERM then takes it back, our own cordon included; what
    /// is killed, or whose terminal goes away, stays as it is for --take-over. A drain that the driver carries out goes
    /// on without whoever asked for it, until `scupper cancel`.
    #[arg(long)]
    pub local: bool,
    /// The driver that is asked to do it, where it offers that for the node.
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    /// The namespace of the leases by which all who drain a node notice each other: the driver's own.
    #[arg(long, default_value = LEASE_NAMESPACE, value_name = "NAMESPACE")]
    pub lease_namespace: String,
    /// How long the driver may take until it begins; then it is not asked any more, and nothing was changed.
    #[arg(long, default_value = "30s", value_name = "DURATION")]
    pub taken_within: String,
}

/// `scupper cancel`
#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// The driver whose drains are meant.
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    /// How long to wait until everything is put back.
    #[arg(long, default_value = "60s", value_name = "DURATION")]
    pub ended_within: String,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Whether anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// It is done.
    None,
    /// It is shown.
    Client,
    /// It is shown, and the API server says what it would allow.
    Server,
}

/// `scupper uncordon`
#[derive(Debug, clap::Args)]
pub struct UncordonArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    #[command(flatten)]
    pub shown: ShownArgs,
    /// Lift a cordon that is not Scupper's, too, as `kubectl uncordon` does. From here, not by the driver.
    #[arg(long)]
    pub force: bool,
    /// Go on with an uncordon that another `scupper uncordon` has begun, for when that one was killed.
    #[arg(long)]
    pub take_over: bool,
    #[command(flatten)]
    pub hand_over: HandOverArgs,
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `scupper status`
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Go on telling whenever something changes.
    #[arg(long, short)]
    pub watch: bool,
    #[command(flatten)]
    pub shown: ShownArgs,
    /// The namespace of the leases that say whether somebody is at a drain: the driver's own.
    #[arg(long, default_value = LEASE_NAMESPACE, value_name = "NAMESPACE")]
    pub lease_namespace: String,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Which nodes.
#[derive(Clone, Debug, clap::Args)]
pub struct NodesArgs {
    /// The nodes.
    #[arg(value_name = "NODE", required_unless_present = "selector")]
    pub names: Vec<String>,
    /// All nodes with these labels instead, for instance pool=gpu,zone!=b
    #[arg(long, short = 'l', value_name = "SELECTOR", conflicts_with = "names")]
    pub selector: Option<String>,
}

/// `kubectl drain`'s flags, which mean what they mean there. What is not given is as the configuration file says, or
/// else as for `kubectl drain`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KubectlArgs {
    /// Let pods without a controller leave, too, and those whose DaemonSet is gone [default: false].
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub force: Option<bool>,
    /// Leave DaemonSet pods where they are instead of refusing the drain [default: false].
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub ignore_daemonsets: Option<bool>,
    /// Let pods with an emptyDir volume leave, too; what is in it is lost [default: false].
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub delete_emptydir_data: Option<bool>,
    /// Overrides the pods' own grace period, in seconds; negative: their own [default: -1].
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS")]
    pub grace_period: Option<i64>,
    /// How long the drain of one node may take; 0: as long as it takes, or as the driver's drain.sla says where the
    /// driver does it [default: 0].
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
    /// Only pods with these labels leave. The others stay, and nothing waits for them.
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub pod_selector: String,
    /// Delete pods instead of evicting them, past their disruption budgets.
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        value_name = "BOOL",
        hide_default_value = true
    )]
    pub disable_eviction: bool,
    /// Leave pods out that have been ending for longer than this, in seconds; 0: none.
    #[arg(
        long,
        allow_negative_numbers = true,
        default_value_t = 0,
        value_name = "SECONDS"
    )]
    pub skip_wait_for_delete_timeout: i64,
    /// Objects that one page of a list has; 0: all in one.
    #[arg(
        long,
        allow_negative_numbers = true,
        default_value_t = 500,
        value_name = "NUMBER"
    )]
    pub chunk_size: i64,
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
