//! What can be typed for a forecast.

use std::num::NonZeroU16;
use std::path::PathBuf;

use crate::args::{ClusterArgs, PolicyArgs};
use crate::node::{NodesArgs, PlannedByArgs};
use crate::setting_flags::{SettingFlags, Terminal};

/// `scupper forecast`
#[derive(Debug, clap::Args)]
#[command(mut_arg("names", |names| names.required_unless_present("selector")))]
pub struct ForecastArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Forecast the cluster in this file: the output of `kubectl get nodes,ns,pods,pdb,svc,ds,deploy,rs,sts,pvc,pv -A -o json`; -: standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "context", "cluster", "user", "as_user", "driver_name"])]
    pub from: Option<PathBuf>,
    /// Use the driver's defaults: keep DaemonSet pods, delete emptyDir data
    #[arg(long)]
    pub as_driver: bool,
    /// Recorded drains to learn times from [default: `recordings` in --state-dir]
    #[arg(long, value_name = "DIR")]
    pub recordings: Option<PathBuf>,
    /// How often to play each drain [default: 200; of more than 5 nodes fewer, 10 at least]
    #[arg(long, value_name = "NUMBER")]
    pub plays: Option<NonZeroU16>,
    #[command(flatten)]
    pub drain: SettingFlags<Terminal>,
    #[command(flatten)]
    pub by: PlannedByArgs,
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}
