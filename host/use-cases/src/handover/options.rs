//! What is handed over, and what is cancelled.

use std::time::Duration;

use scupper_engine::Intent;

use scupper_cluster::Connection;
use scupper_common::clock::Clock;
use scupper_config::DrainSettings;
use scupper_driver::{NodeSelection, PoliciesOptions};
use scupper_report::ProgressBoard;

/// What is handed over.
#[derive(Clone, Debug)]
pub struct HandOverOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The nodes.
    pub nodes: NodeSelection,
    /// Drain or uncordon.
    pub intent: Intent,
    /// The driver's name.
    pub driver: String,
    /// What a drain is to be like, as the event carries it.
    pub flags: Option<String>,
    /// The time limit among these flags; `None`: none.
    pub timeout: Option<Duration>,
    /// A flag that was given and that only a drain from here obeys.
    pub own_flag: Option<String>,
    /// How long a LifecycleEvent may wait for the driver before the command deletes it.
    pub claim_timeout: Duration,
    /// Where the leases of nodes are.
    pub lease_namespace: String,
    /// How many nodes at once.
    pub parallel: usize,
    /// Several nodes are cordoned before the first drain is requested.
    pub cordon_first: bool,
    /// Objects a page of a list.
    pub page_size: u32,
    /// The live display; `None`: none.
    pub board: Option<ProgressBoard>,
    /// What time it is.
    pub clock: Clock,
}

/// What is cancelled.
#[derive(Clone, Debug)]
pub struct CancelOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The nodes.
    pub nodes: NodeSelection,
    /// The driver's name.
    pub driver: String,
    /// How long is waited for the end of what is cancelled.
    pub wait_timeout: Duration,
    /// Where the leases of nodes are.
    pub lease_namespace: String,
    /// What to load to undo a drain whose process is gone.
    pub policies: PoliciesOptions,
    /// How such a drain is undone.
    pub settings: DrainSettings,
    /// What time it is.
    pub clock: Clock,
}
