//! What can be typed for nodes: names or a selector, and the flags of `kubectl drain`.

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use clap_complete::engine::ArgValueCompleter;

use crate::args::{ClusterArgs, DRIVER, PolicyArgs};
use crate::completion;
use crate::recordings::RecordArgs;
use crate::setting_flags::{SettingFlags, Terminal};
use scupper_cluster::LEASE_NAMESPACE;

/// `scupper plan`
#[derive(Debug, clap::Args)]
#[command(mut_arg("names", |names| names.required_unless_present_any(["selector", "drain_request"])))]
pub struct PlanArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Plan with the driver's defaults: keep DaemonSet pods, delete emptyDir data
    #[arg(long)]
    pub as_driver: bool,
    /// Plan the drain that the driver would run for this DrainRequest, with the driver's defaults
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        value_parser = DrainRequestName::parse,
        requires = "config",
        conflicts_with_all = ["names", "selector", "node-is-off", "local"]
    )]
    pub drain_request: Option<DrainRequestName>,
    /// Also save the plan, and the objects that were read for it, as a scenario for `scupper policy test`. Environment
    /// variables and command lines of containers are left out
    #[arg(
        long,
        value_name = "DIR",
        requires = "config",
        conflicts_with_all = [
            "pod-selector",
            "disable-eviction",
            "skip-wait-for-delete-timeout",
            "node-is-off",
            "local-data"
        ]
    )]
    pub save_scenario: Option<PathBuf>,
    /// Recorded drains from which to say how long it would take [default: in --state-dir]
    #[arg(long, value_name = "DIR")]
    pub recordings: Option<PathBuf>,
    #[command(flatten)]
    pub drain: SettingFlags<Terminal>,
    #[command(flatten)]
    pub by: PlannedByArgs,
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// A DrainRequest's namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRequestName {
    pub namespace: String,
    pub name: String,
}

impl DrainRequestName {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err("must be NAMESPACE/NAME, such as nvsentinel/drain-node-7".to_owned()),
        }
    }
}

/// `scupper drain`
#[derive(Debug, clap::Args)]
#[command(mut_arg("names", |names| names.required_unless_present("selector")))]
pub struct DrainNodesArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Only show what would be done; server: also ask the API server about each eviction [default: none]
    #[arg(
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = DryRun::None,
        default_missing_value = "client",
        hide_default_value = true,
        hide_possible_values = true,
        value_name = "none|client|server"
    )]
    pub dry_run: DryRun,
    /// Number of nodes to drain at once
    #[arg(long, default_value_t = NonZeroU16::MIN, value_name = "NUMBER")]
    pub parallel: NonZeroU16,
    /// First cordon all nodes that can be drained
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        hide_possible_values = true,
        value_name = "BOOL"
    )]
    pub cordon_first: bool,
    #[command(flatten)]
    pub drain: SettingFlags<Terminal>,
    #[command(flatten)]
    pub hand_over: HandOverArgs,
    /// Continue a drain whose process is gone, once its Lease expires
    #[arg(long, help_heading = DRIVER)]
    pub take_over: bool,
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub shown: ShownArgs,
    #[command(flatten)]
    pub recorded: RecordArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ShownArgs {
    /// Running work: auto (redrawn in a terminal) or plain (always lines)
    #[arg(
        long,
        value_enum,
        default_value_t = ProgressMode::Auto,
        hide_possible_values = true,
        value_name = "auto|plain",
        help_heading = "Output"
    )]
    pub progress: ProgressMode,
}

/// How what is under way is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressMode {
    /// As a display in a terminal, as lines elsewhere.
    Auto,
    /// As lines.
    Plain,
}

/// Who does it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = DRIVER)]
pub struct HandOverArgs {
    /// Without the driver and its policies; Ctrl-C then rolls back
    #[arg(long)]
    pub local: bool,
    /// Driver to hand the work to
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    /// How long the driver may take to begin
    #[arg(long, default_value = "30s", value_name = "DURATION")]
    pub claim_timeout: String,
    /// Namespace of the nodes' Leases: the driver's
    #[arg(long, default_value = LEASE_NAMESPACE, value_name = "NAMESPACE")]
    pub lease_namespace: String,
}

/// Who would do it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = DRIVER)]
pub struct PlannedByArgs {
    /// As a drain with --local, even if a driver could do it
    #[arg(long, conflicts_with = "as_driver")]
    pub local: bool,
    /// Driver that a drain would be handed to
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
}

/// `scupper cancel`
#[derive(Debug, clap::Args)]
#[command(mut_arg("names", |names| names.required_unless_present("selector")))]
pub struct CancelArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// How long to wait until the drain has ended and is rolled back
    #[arg(long, default_value = "60s", value_name = "DURATION")]
    pub wait_timeout: String,
    /// Driver whose drains to cancel
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    /// Namespace of the nodes' Leases: the driver's
    #[arg(long, default_value = LEASE_NAMESPACE, value_name = "NAMESPACE")]
    pub lease_namespace: String,
    #[command(flatten)]
    pub policies: PolicyArgs,
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
#[command(mut_arg("names", |names| names.required_unless_present("selector")))]
pub struct UncordonArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Also lift a cordon that is not Scupper's, as `kubectl uncordon` does; implies --local
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub hand_over: HandOverArgs,
    /// Continue an uncordon whose process is gone, once its Lease expires
    #[arg(long, help_heading = DRIVER)]
    pub take_over: bool,
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub shown: ShownArgs,
    #[command(flatten)]
    pub recorded: RecordArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `scupper status`
#[derive(Debug, clap::Args)]
#[command(mut_arg("names", |names| names.help("Names of nodes [default: all that drain, are drained, wait or have failed, one line each]")))]
pub struct StatusArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Print again after every change, until Ctrl-C; needs NODE or --selector
    #[arg(long, short)]
    pub watch: bool,
    /// Namespace of the nodes' Leases: the driver's
    #[arg(long, default_value = LEASE_NAMESPACE, value_name = "NAMESPACE")]
    pub lease_namespace: String,
    #[command(flatten)]
    pub shown: ShownArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Which nodes.
#[derive(Clone, Debug, clap::Args)]
pub struct NodesArgs {
    /// Names of nodes
    #[arg(value_name = "NODE", value_parser = NonEmptyStringValueParser::new(), add = ArgValueCompleter::new(completion::nodes))]
    pub names: Vec<String>,
    /// Label selector of nodes, instead of names, for example pool=gpu,zone!=b
    #[arg(long, short = 'l', value_name = "SELECTOR", conflicts_with = "names")]
    pub selector: Option<String>,
}
