//! Options of a drain or uncordon from the command line.

use std::path::PathBuf;

use scupper_engine::Intent;

use crate::{NodeSelection, PoliciesOptions};
use scupper_cluster::Connection;
use scupper_common::clock::Clock;
use scupper_config::DrainSettings;
use scupper_lease::ObservedLease;
use scupper_recording::RecordingTarget;
use scupper_report::{Format, ProgressBoard};
use scupper_runner::reporter::Output;
use scupper_traces::TraceSettings;

/// The undoing of a drain whose process is gone.
#[derive(Clone, Debug)]
pub struct RollBack {
    /// Why.
    pub reason: String,
    /// The Lease of that process, as this one has observed it.
    pub lease: Option<ObservedLease>,
}

/// Options of a drain or uncordon from the command line.
#[derive(Clone)]
pub struct LocalOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The nodes.
    pub nodes: NodeSelection,
    /// Drain or uncordon.
    pub intent: Intent,
    /// The settings of the drain of each node.
    pub drain: DrainSettings,
    /// What to load.
    pub policies: PoliciesOptions,
    /// How many nodes at once.
    pub parallel: usize,
    /// Several nodes are cordoned before the first drain begins.
    pub cordon_first: bool,
    /// Continue where another process stopped.
    pub take_over: bool,
    /// Undo what another process did instead of continuing it.
    pub roll_back: Option<RollBack>,
    /// Uncordon also lifts cordons that are not ours.
    pub any_cordon: bool,
    /// Format of the output.
    pub format: Format,
    /// Where the output goes.
    pub output: Output,
    /// The live display; `None`: none.
    pub board: Option<ProgressBoard>,
    /// Where the leases of nodes are.
    pub lease_namespace: String,
    /// The trace collector; `None`: none.
    pub traces: Option<TraceSettings>,
    /// Where recordings of drains go.
    pub recordings: RecordingTarget,
    /// What time it is.
    pub clock: Clock,
    /// The program that compiles policies; `None`: this one.
    pub compiler: Option<PathBuf>,
}
