//! Why a command does not drain a node.

use scupper_engine::{Checkpoint, Trigger};

/// Why a command does not drain a node.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Another process drains it, or died while draining it.
    #[error(
        "another process works on node {node}: {phase}, for {trigger} {name}; \
         {}",
        advice(trigger, node)
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
    /// No driver offers to drain it.
    #[error(
        "driver {driver} publishes no drain transition for node {node}; --local drains from here without it"
    )]
    NoDriver {
        /// The node.
        node: String,
        /// The driver.
        driver: String,
    },
    /// Its cordon is not ours.
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
        /// The API server's message.
        message: String,
    },
}

impl LocalError {
    /// A LifecycleEvent of the node is claimed.
    pub(super) fn claimed(node: &str, event: String) -> Self {
        Self::Busy {
            node: node.to_owned(),
            trigger: Trigger::LifecycleEvent.name().to_owned(),
            name: event,
            phase: "claimed".to_owned(),
        }
    }

    /// Another process's checkpoint is on the node.
    pub(super) fn busy(node: &str, mark: Checkpoint) -> Self {
        Self::Busy {
            node: node.to_owned(),
            trigger: mark.trigger,
            name: mark.name,
            phase: mark.phase.to_string(),
        }
    }
}

fn advice(trigger: &str, node: &str) -> String {
    if Trigger::of(trigger) == Trigger::Command {
        format!(
            "to stop it: scupper cancel {node}; if that process is gone, continue its drain with --take-over"
        )
    } else {
        format!("to stop it: scupper cancel {node}")
    }
}
