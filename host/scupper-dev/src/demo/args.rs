//! What can be typed after `scupper demo`.

use std::path::PathBuf;

/// `scupper demo`
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// slurm.wasm, built by `make plugins`; drains a simulated Slurm node
    #[arg(long, value_name = "FILE", required_unless_present_any = ["openstack", "nvsentinel", "forecast"])]
    pub slurm: Option<PathBuf>,
    /// Show three stuck drains and how `scupper status` explains each
    #[arg(long, requires = "slurm", conflicts_with = "slurm_testbed")]
    pub stuck: bool,
    /// Program that starts a real Slurm to drain instead: host/testbeds/slurm/slurm-testbed
    #[arg(long, value_name = "PROGRAM", requires = "slurm")]
    pub slurm_testbed: Option<PathBuf>,
    /// openstack.wasm, built by `make plugins`; drains a compute host of a real Nova
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "slurm",
        requires = "openstack_testbed"
    )]
    pub openstack: Option<PathBuf>,
    /// Program that starts the real OpenStack: host/testbeds/openstack/openstack-testbed
    #[arg(long, value_name = "PROGRAM", requires = "openstack_state")]
    pub openstack_testbed: Option<PathBuf>,
    /// Directory that keeps the real OpenStack between demos
    #[arg(long, value_name = "DIR")]
    pub openstack_state: Option<PathBuf>,
    /// Directory with gpu.wasm and namespace-modes.wasm, built by `make plugins`; drains one GPU of a node, then the node, for
    /// DrainRequests of NVSentinel
    #[arg(long, value_name = "DIR", conflicts_with_all = ["slurm", "openstack"])]
    pub nvsentinel: Option<PathBuf>,
    /// Directory with announce.wasm and priority.wasm: forecast two drains, carry them out, compare, and play another policy
    /// on the recordings
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["slurm", "openstack", "nvsentinel"],
        requires = "page"
    )]
    pub forecast: Option<PathBuf>,
    /// File for the HTML report
    #[arg(long, value_name = "FILE", requires = "forecast")]
    pub page: Option<PathBuf>,
}
