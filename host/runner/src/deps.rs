//! What every drain of a process shares.

use crate::node_watch::LatestNode;
use crate::reporter::policy_messages::PolicyMessages;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_common::health::Health;
use scupper_recording::RecordingTarget;
use scupper_traces::Traces;

/// What a runner needs.
#[derive(Clone)]
pub struct RunnerDeps {
    /// The API server.
    pub cluster: Cluster,
    /// Monotonic.
    pub clock: Clock,
    /// Whether its loop turns.
    pub health: Health,
    /// The node of the drain, if it is watched already.
    pub watched_node: Option<LatestNode>,
    /// Messages of policies about nodes.
    pub policy_messages: PolicyMessages,
    /// The trace exporter, if there is a collector.
    pub traces: Option<Traces>,
    /// Where recordings of drains go.
    pub recordings: RecordingTarget,
}
