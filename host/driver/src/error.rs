//! Errors outside of a drain.

use std::path::PathBuf;

use crate::occupancy::LocalError;
use scupper_cluster::{ConnectError, ReadError, WriteError};
use scupper_common::tasks::TaskEnded;
use scupper_metrics::MetricsError;
use scupper_policy::{LoadError, RuntimeError};
use scupper_policy_reload::StartError;
use scupper_traces::TracesError;
use scupper_triggers::slm::SlmError;

/// Why the driver, or a drain in this process, could not start.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The cluster could not be reached at all.
    #[error("could not connect to the cluster")]
    Connect(#[source] ConnectError),
    /// The node could not be read.
    #[error("could not read node {node}")]
    Node {
        /// The node.
        node: String,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// The node does not exist.
    #[error("there is no node {node}{}", did_you_mean(nearest))]
    NoSuchNode {
        /// The name.
        node: String,
        /// The most similar names of nodes.
        nearest: Vec<String>,
    },
    /// The node does not exist, and policies must still undo something for it.
    #[error("there is no node {node}; {left}, once there is one again")]
    NodeGone {
        /// The node.
        node: String,
        /// What they must undo, and the command.
        left: String,
    },
    /// The API server did not say what it serves.
    #[error("could not look up the lifecycle API")]
    Discovery(#[source] ReadError),
    /// The nodes with some labels could not be listed.
    #[error("could not list the nodes{}", if selector.is_empty() { String::new() } else { format!(" with labels {selector}") })]
    Selector {
        /// The selector.
        selector: String,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// The taint of a drain with `--node-is-off` could not be removed.
    #[error("could not return the node to service")]
    Taint(#[source] WriteError),
    /// The node must not be drained from here.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The API server does not know LifecycleEvents.
    #[error(
        "the API server serves lifecycleevents neither in lifecycle.k8s.io/v1alpha1 nor in \
         lifecycle.scupper.dev/v1alpha1; install them with `kubectl apply -f deploy/crds/lifecycle.yaml`, or with \
         `kubectl apply -f deploy/crds/lifecycle.scupper.dev.yaml` where the server keeps the first group for \
         itself: `scupper doctor` says which"
    )]
    LifecycleNotServed,
    /// Compiled policies cannot be kept anywhere.
    #[error("could not prepare the policy cache {}", path.display())]
    Cache {
        /// Where it should have been.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The runtime for policies could not be made.
    #[error("could not prepare the policy runtime")]
    Runtime(#[source] RuntimeError),
    /// A policy cannot be used.
    #[error("could not load the policies")]
    Policies(#[source] LoadError),
    /// The policies cannot be started.
    #[error("could not load the policies")]
    Reload(#[source] StartError),
    /// Metrics could not be served.
    #[error("could not serve metrics")]
    Metrics(#[source] MetricsError),
    /// Traces could not be sent.
    #[error("could not prepare to send traces")]
    Traces(#[source] TracesError),
    /// The kubelet's side could not be served.
    #[error("could not serve the kubelet")]
    Slm(#[from] SlmError),
    /// A task of the driver ended, and the driver with it.
    #[error("the driver cannot continue")]
    Task(#[from] TaskEnded),
}

impl DriverError {
    /// The error of a failed read of this node.
    pub fn of_node(node: &str) -> impl Fn(ReadError) -> Self + use<> {
        let node = node.to_owned();
        move |source| Self::Node {
            node: node.clone(),
            source,
        }
    }
}

/// `; did you mean worker-1 or worker-2?`, empty without a name.
fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => format!("; did you mean {name}?"),
        [others @ .., last] => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}
