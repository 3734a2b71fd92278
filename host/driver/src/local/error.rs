//! Why a node is left alone.

use scupper_engine::{Checkpoint, Trigger};

/// Why a node is left alone.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Another process is at it, or died over it.
    #[error(
        "another process works on node {node}: {phase}, for {trigger} {name}; \
         {}",
        remedy(trigger, node)
    )]
    Busy {
        /// The node.
        node: String,
        /// Who asked for that.
        trigger: String,
        /// What it is called.
        name: String,
        /// Where it stands.
        phase: String,
    },
    /// Nobody offers to do it.
    #[error(
        "driver {driver} publishes no drain transition for node {node}; --local drains from here without it"
    )]
    NoDriver {
        /// The node.
        node: String,
        /// The driver.
        driver: String,
    },
    /// Its cordon is somebody else's.
    #[error("node {node} was not cordoned by Scupper; --force also lifts that cordon")]
    ForeignCordon {
        /// The node.
        node: String,
    },
    /// A foreign cordon could not be made ours.
    #[error("could not take over the cordon of node {node}: {message}")]
    Adopt {
        /// The node.
        node: String,
        /// What the API server says.
        message: String,
    },
}

impl LocalError {
    /// Another process's mark stands on the node.
    pub fn busy(node: &str, mark: Checkpoint) -> Self {
        Self::Busy {
            node: node.to_owned(),
            trigger: mark.trigger,
            name: mark.name,
            phase: mark.phase.to_string(),
        }
    }
}

fn remedy(trigger: &str, node: &str) -> String {
    if Trigger::of(trigger) == Trigger::Command {
        format!(
            "to stop it: scupper cancel {node}; if that process is gone, continue its drain with --take-over"
        )
    } else {
        format!("to stop it: scupper cancel {node}")
    }
}
