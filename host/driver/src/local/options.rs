//! What is asked for at the command line.

use std::path::PathBuf;
use std::time::Duration;

use scupper_engine::{Intent, Settings};

use crate::{Nodes, Output, PoliciesOptions};
use scupper_cluster::Connection;
use scupper_common::clock::Clock;
use scupper_report::{Format, ProgressBoard, TraceSettings};

/// What is asked for at the command line.
#[derive(Clone)]
pub struct LocalOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The nodes.
    pub nodes: Nodes,
    /// Drain or uncordon.
    pub intent: Intent,
    /// How pods are chosen and evicted.
    pub settings: Settings,
    /// What to load.
    pub policies: PoliciesOptions,
    /// How long one eviction request may take.
    pub eviction_timeout: Duration,
    /// Objects a page of a list.
    pub page_size: u32,
    /// For each node; `None`: as long as it takes.
    pub timeout: Option<Duration>,
    /// How many nodes at once.
    pub parallel: usize,
    /// Go on where another process of ours stopped.
    pub take_over: bool,
    /// Uncordon lifts cordons that are not ours, too.
    pub any_cordon: bool,
    /// How it is told.
    pub format: Format,
    /// Where it is told.
    pub output: Output,
    /// Where it is told how each node stands; `None`: nobody looks.
    pub board: Option<ProgressBoard>,
    /// Where the leases of nodes are.
    pub lease_namespace: String,
    /// Where drains are told as traces; `None`: nowhere.
    pub traces: Option<TraceSettings>,
    /// What time it is.
    pub clock: Clock,
    /// The program that compiles policies; `None`: this one.
    pub compiler: Option<PathBuf>,
}
